// Client of retryd: durable retries of failed calls, and worker fleets. No dependencies; Node 18 or later.
// retryd.d.ts says what each call takes and gives; docs/clients.md shows them in use.
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";

export class RetrydError extends Error {
  constructor(message, status) {
    super(message);
    this.name = new.target.name;
    this.status = status;
  }
}
export class Away extends RetrydError {}
export class Refused extends RetrydError {}
export class Stale extends Refused {}

export class Failure extends Error {
  constructor(reason, details = "", { notBeforeS = 0 } = {}) {
    super(details ? `${reason}: ${details}` : reason);
    Object.assign(this, { name: new.target.name, reason, notBeforeS });
  }
}
export class GiveUp extends Failure {}

const newKey = () => randomBytes(16).toString("hex");
const worker = () => `${hostname()}-${process.pid}`;
const now = () => performance.now();
// The n-th pause of a series: 100 ms doubling to 10 s, the upper half of it by chance.
const pauseMs = (n) => Math.min(10000, 100 * 2 ** Math.min(n, 7)) * (0.5 + Math.random() / 2);
const reasonOf = (error) => error?.reason ?? error?.name ?? "Error";

function sleep(ms, signal) {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}

function encode(body) {
  if (body instanceof Uint8Array) return [body, "application/octet-stream"];
  if (typeof body === "string") return [body, "text/plain; charset=utf-8"];
  return [JSON.stringify(body), "application/json"];
}

const decode = (job) => ("body_base64" in job ? new Uint8Array(Buffer.from(job.body_base64, "base64")) : job.body);

// A sign of life that is sent again and again: a heartbeat, the extension of a lease.
class Beat {
  // The life began between asked and now, far apart after a long poll: hoped for the later, renewed as for the earlier.
  constructor(client, path, body, asked, lifeMs) {
    Object.assign(this, { client, path, body, lifeMs, goodUntil: now() + lifeMs, over: false, stopped: false });
    this.plan(asked + lifeMs / 3);
  }

  plan(at) {
    this.timer = setTimeout(() => this.send(), Math.max(0, at - now()));
  }

  lost() {
    return this.over || now() >= this.goodUntil;
  }

  stop() {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  async send() {
    const asked = now();
    try {
      await this.client.ask("POST", this.path, this.body, { timeoutMs: Math.min(3000, this.lifeMs / 3) });
      this.goodUntil = asked + this.lifeMs;
      if (!this.stopped) this.plan(asked + this.lifeMs / 3);
    } catch (error) {
      if (this.stopped) return;
      if (error instanceof Away && !this.lost()) return this.plan(now() + this.lifeMs / 12);
      this.over = true;
      this.client.log(`${this.path}: lost: ${error.message}`);
    }
  }
}

export class Client {
  constructor(url, { project, token, timeoutMs = 10000, log = () => {} } = {}) {
    Object.assign(this, { url: url.replace(/\/+$/, ""), timeoutMs, log, functions: new Map(), loops: [] });
    this.headers = {};
    if (project) this.headers["X-Project-ID"] = project;
    if (token) this.headers["X-Auth-Token"] = token;
    this.stopping = new AbortController();
  }

  async once(method, path, body, headers, timeoutMs) {
    let answer, text;
    try {
      answer = await fetch(this.url + path, {
        method, body, headers: { ...this.headers, ...headers }, signal: AbortSignal.timeout(timeoutMs),
      });
      text = await answer.text();
    } catch (error) {
      throw new Away(`no answer from ${this.url}: ${error.cause?.message ?? error.message}`);
    }
    if (answer.ok) return text;
    let words = "";
    try {
      const problem = JSON.parse(text);
      words = problem.detail ?? problem.title ?? "";
    } catch { /* no problem details */ }
    const message = `the server answered ${answer.status}${words ? `: ${words}` : ""}`;
    if (answer.status === 408 || answer.status === 429 || answer.status >= 500) throw new Away(message, answer.status);
    throw new (answer.status === 409 || answer.status === 410 ? Stale : Refused)(message, answer.status);
  }

  // Again with growing pauses while the server is away and until() is not over.
  async request(method, path, body, headers, { timeoutMs = this.timeoutMs, until = () => 0 } = {}) {
    for (let n = 0; ; n++) {
      try {
        return await this.once(method, path, body, headers, timeoutMs);
      } catch (error) {
        const pause = pauseMs(n);
        if (!(error instanceof Away) || now() + pause >= until()) throw error;
        await sleep(pause);
      }
    }
  }

  async ask(method, path, body, { headers = {}, ...more } = {}) {
    const json = body === undefined ? undefined : JSON.stringify(body);
    const text = await this.request(method, path, json, { "Content-Type": "application/json", ...headers }, more);
    return text ? JSON.parse(text) : undefined;
  }

  async schedule(type, body, { key = newKey(), reason, orderKey, deliverAfterS, contentType } = {}) {
    const [payload, usualType] = encode(body);
    const headers = { "Idempotency-Key": key, "Content-Type": contentType ?? usualType };
    if (reason) headers["Retry-Reason"] = reason;
    if (orderKey) headers["Order-Key"] = orderKey;
    if (deliverAfterS) headers["Deliver-After"] = String(deliverAfterS);
    const end = now() + this.timeoutMs;
    const answer = await this.request("POST", `/v1/events/${encodeURIComponent(type)}`, payload, headers, { until: () => end });
    return { id: JSON.parse(answer).id, key };
  }

  retryable(type, run, options = {}) {
    if (this.functions.has(type)) throw new Error(`"${type}" is registered already`);
    this.functions.set(type, run);
    const call = async (body) => {
      try {
        return await run(body, { type, attempt: 0, lost: () => false });
      } catch (error) {
        if (error instanceof GiveUp) throw error;
        const receipt = await this.schedule(type, body, { reason: reasonOf(error), deliverAfterS: error?.notBeforeS, ...options });
        return { scheduled: receipt };
      }
    };
    call.schedule = (body, more = {}) => this.schedule(type, body, { ...options, ...more });
    return call;
  }

  start({ types = [...this.functions.keys()], concurrency = 1, leaseS = 30, waitMs = 5000 } = {}) {
    this.stopping = new AbortController();
    for (const type of types)
      for (let i = 0; i < concurrency; i++) this.loops.push(this.work(type, this.functions.get(type), leaseS, waitMs));
  }

  async stop() {
    this.stopping.abort();
    await Promise.all(this.loops.splice(0));
  }

  async work(type, run, leaseS, waitMs) {
    const { signal } = this.stopping;
    const path = `/v1/event-types/${encodeURIComponent(type)}/claim`;
    for (let failures = 0; !signal.aborted; ) {
      const since = now();
      try {
        const claim = { worker: worker(), limit: 1, lease_s: leaseS, wait_ms: waitMs };
        const claimed = await this.ask("POST", path, claim, { timeoutMs: this.timeoutMs + waitMs });
        failures = 0;
        for (const job of claimed?.jobs ?? []) await this.runJob(run, job, since, leaseS, signal);
      } catch (error) {
        this.log(`${path}: ${error.message}`);
        await sleep(pauseMs(failures++), signal);
      }
    }
  }

  async runJob(run, job, since, leaseS, signal) {
    const path = `/v1/jobs/${job.id}`, token = job.token;
    const beat = new Beat(this, `${path}/extend`, { token, lease_s: leaseS }, since, leaseS * 1000);
    let verb = "finish", said = {};
    try {
      if (signal.aborted) verb = "release";
      else {
        const { type, id, attempt, reason, order_key: orderKey } = job;
        await run(decode(job), { type, id, attempt, reason, orderKey, lost: () => beat.lost() });
      }
    } catch (error) {
      const reason = reasonOf(error);
      verb = "fail";
      said = { error: error?.message && error.message !== reason ? `${reason}: ${error.message}` : reason };
      if (error instanceof GiveUp) said.give_up = true;
      if (error?.notBeforeS) said.retry_after_s = error.notBeforeS;
    }
    beat.stop();
    try {
      await this.ask("POST", `${path}/${verb}`, { token, ...said }, { until: () => beat.goodUntil });
    } catch (error) {
      this.log(`${path}: ${error.message}`);
    }
  }

  async session({ component = "", runtime = worker(), intervalS = 5 } = {}) {
    const session = new Session(this, { component, runtime, interval_s: intervalS });
    await session.living();
    return session;
  }
}

class Session {
  constructor(client, opening) {
    Object.assign(this, { client, opening, beginning: undefined });
  }

  // Its id and beat; a new one where it has expired, opened once for all who ask.
  async living() {
    const { beginning } = this;
    const current = await beginning?.catch(() => undefined);
    if (this.beginning === beginning && (!current || current.beat.lost())) this.beginning = this.begin();
    return this.beginning;
  }

  async begin() {
    const since = now();
    const { session } = await this.client.ask("POST", "/v1/sessions", this.opening, { until: () => since + this.client.timeoutMs });
    const lifeMs = this.opening.interval_s * 1000;
    return { session, beat: new Beat(this.client, `/v1/sessions/${session}/heartbeat`, {}, since, lifeMs) };
  }

  async claim(process, { kind, candidates, strict = false, ignoreBackoff = false, waitMs = 0 } = {}) {
    const timeoutMs = this.client.timeoutMs + waitMs;
    for (let i = 0; i < 3; i++) {
      const { session, beat } = await this.living();
      const end = now() + timeoutMs;
      const what = { session, process, kind, candidates, strict, ignore_backoff: ignoreBackoff, wait_ms: waitMs };
      try {
        const headers = { "Idempotency-Key": newKey() };
        const got = await this.client.ask("POST", "/v1/work/claim", what, { headers, timeoutMs, until: () => end });
        return got && new Work(this.client, beat, got);
      } catch (error) {
        if (!(error instanceof Stale)) throw error;
        if (error.status === 409) return undefined; // strict, and somebody else has it
        beat.stop();
        beat.over = true;
      }
    }
    throw new Stale("sessions expire as soon as they begin", 410);
  }

  async close() {
    const { session, beat } = await this.beginning;
    beat.stop();
    await this.client.ask("DELETE", `/v1/sessions/${session}`).catch(() => {});
  }
}

class Work {
  #end;

  constructor(client, beat, got) {
    const { work: id, entity, process, value, previous_interval_s: previousIntervalS, session, token } = got;
    Object.assign(this, { id, entity, process, value, previousIntervalS, lost: () => beat.lost() });
    this.#end = (verb, said) =>
      client.ask("POST", `/v1/work/${id}/${verb}`, { session, token, ...said }, { until: () => beat.goodUntil });
  }

  finish(patch) {
    return this.#end("finish", { entity_patch: patch });
  }

  fail(cause, more = {}) {
    return this.#end("fail", { cause: String(cause), ...more });
  }

  cancel() {
    return this.#end("cancel");
  }
}
