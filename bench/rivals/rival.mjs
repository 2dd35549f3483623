// One job queue of the Node.js world under load, in one process:
//
//   node rival.mjs bullmq|graphile|pgboss URL add|process SECONDS CONCURRENCY BYTES
//
// add: CONCURRENCY callers that each add one job and wait for the answer.
// process: a backlog is laid first; then CONCURRENCY workers take it, and each job is done at once.
// Prints one JSON object.
const [kind, url, what, secondsText, concurrencyText, bytesText] = process.argv.slice(2);
const seconds = Number(secondsText);
const concurrency = Number(concurrencyText);
const payload = { data: "x".repeat(Number(bytesText) - 12) };
const BACKLOG = 20000;
const CHUNK = 500;

async function bullmq() {
  const { Queue, Worker } = await import("bullmq");
  const address = new URL(url);
  const connection = { host: address.hostname, port: Number(address.port), maxRetriesPerRequest: null };
  const queue = new Queue("bench", { connection, defaultJobOptions: { attempts: 3, removeOnComplete: true } });
  await queue.waitUntilReady();
  let worker;
  return {
    add: () => queue.add("job", payload),
    addMany: (n) => queue.addBulk(Array.from({ length: n }, () => ({ name: "job", data: payload }))),
    start: async (done) => {
      worker = new Worker("bench", async () => done(), { connection, concurrency });
    },
    stop: async () => {
      await worker?.close(true);
      await queue.close();
    },
  };
}

async function graphile() {
  const { makeWorkerUtils, run, Logger } = await import("graphile-worker");
  const quiet = new Logger(() => () => {});
  const utils = await makeWorkerUtils({ connectionString: url, logger: quiet, maxPoolSize: 16 });
  await utils.migrate();
  let runner;
  return {
    add: () => utils.addJob("job", payload),
    addMany: (n) => Promise.all(Array.from({ length: n }, () => utils.addJob("job", payload))),
    start: async (done) => {
      runner = await run({
        connectionString: url, concurrency, maxPoolSize: 16, logger: quiet, noHandleSignals: true,
        taskList: { job: async () => done() },
      });
    },
    stop: async () => {
      await runner?.stop();
      await utils.release();
    },
  };
}

async function pgboss() {
  const { default: PgBoss } = await import("pg-boss");
  const boss = new PgBoss({ connectionString: url, max: 16, supervise: false, schedule: false });
  boss.on("error", () => {});
  await boss.start();
  await boss.createQueue("bench");
  let stopping = false;
  return {
    add: () => boss.send("bench", payload),
    addMany: (n) => boss.insert(Array.from({ length: n }, () => ({ name: "bench", data: payload }))),
    // Fetch and complete by hand: its own workers poll twice a second at the most.
    start: async (done) => {
      const take = async () => {
        while (!stopping) {
          const jobs = await boss.fetch("bench", { batchSize: 20 });
          if (jobs.length === 0) continue;
          await boss.complete("bench", jobs.map((job) => job.id));
          for (let i = 0; i < jobs.length; i++) done();
        }
      };
      for (let i = 0; i < Math.min(concurrency, 16); i++) take().catch(() => {});
    },
    stop: async () => {
      stopping = true;
      await boss.stop({ graceful: false });
    },
  };
}

async function adds(queue) {
  let count = 0;
  const began = performance.now();
  const until = began + seconds * 1000;
  const caller = async () => {
    while (performance.now() < until) {
      await queue.add();
      count++;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, caller));
  return (count * 1000) / (performance.now() - began);
}

async function processed(queue) {
  for (let n = 0; n < BACKLOG; n += CHUNK) await queue.addMany(CHUNK);
  let count = 0, first = 0, last = 0, finish;
  const all = new Promise((resolve) => (finish = resolve));
  await queue.start(() => {
    last = performance.now();
    if (count++ === 0) first = last;
    if (count === BACKLOG) finish();
  });
  await Promise.race([all, new Promise((resolve) => setTimeout(resolve, seconds * 10000))]);
  return (count * 1000) / (last - first);
}

const queue = await { bullmq, graphile, pgboss }[kind]();
const perSecond = await (what === "add" ? adds(queue) : processed(queue));
console.log(JSON.stringify({ per_second: Math.round(perSecond) }));
await queue.stop();
process.exit(0);
