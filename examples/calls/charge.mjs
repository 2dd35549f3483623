// charge.c in JavaScript: node charge.mjs run CARD… | work, with $RETRYD_URL and $DEPENDENCY.
import { constants, open } from "node:fs/promises";
import { once } from "node:events";
import { Client, Failure } from "../../clients/js/retryd.js";

const client = new Client(process.env.RETRYD_URL ?? "http://127.0.0.1:8888", { log: (line) => console.error(`charge: ${line}`) });

const charge = client.retryable("card.transaction", async (card) => {
  try {
    const file = await open(process.env.DEPENDENCY, constants.O_WRONLY | constants.O_APPEND);
    await file.write(`${card}\n`);
    await file.close();
  } catch (error) {
    throw new Failure("card-unreachable", error.code);
  }
});

const [verb, ...cards] = process.argv.slice(2);
if (verb === "run") {
  for (const card of cards) {
    const result = await charge(card);
    console.log(`${card}: ${result ? JSON.stringify(result) : "charged"}`);
  }
} else {
  client.start({ concurrency: 4, leaseS: 10, waitMs: 1000 });
  await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  await client.stop();
}
