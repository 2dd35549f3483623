/** Any JSON value; a string is sent as text, a Uint8Array as bytes. */
export type Body = unknown;

/** status: what the server answered with, if it did. */
export class RetrydError extends Error {
  status?: number;
}
/** No answer, or one that says "later" (408, 429, 5xx), until the time was over. */
export class Away extends RetrydError {}
/** The server will not have it; the message has its words. */
export class Refused extends RetrydError {}
/** What one held is no longer one's own: lease over, session expired, work ended. */
export class Stale extends Refused {}

/** What a call may throw to say more than that it failed: a reason that can be counted, words, seconds to wait at least. */
export class Failure extends Error {
  constructor(reason: string, details?: string, options?: { notBeforeS?: number });
  reason: string;
  notBeforeS: number;
}
/** Trying again is of no use: it becomes a dead letter at once. */
export class GiveUp extends Failure {}

export interface ScheduleOptions {
  /** Idempotency key: within a day it makes one event. Left out: a random one. */
  key?: string;
  /** Why the call failed: "api1-429", "api1-5xx", … */
  reason?: string;
  /** Events of one key are run one after the other. */
  orderKey?: string;
  deliverAfterS?: number;
  contentType?: string;
}

export interface Receipt {
  /** Of the job on the server, on whose disk it is. */
  id: string;
  key: string;
}

/** One run of a call. */
export interface Call {
  type: string;
  /** Of the job; undefined when called directly. */
  id?: string;
  /** 0 when called directly; 1, 2, … by a worker. */
  attempt: number;
  reason?: string | null;
  orderKey?: string | null;
  /** True once the lease is over: another worker may have it, so leave no more traces. */
  lost(): boolean;
}

export interface Retryable<B, R> {
  /** Runs it now. If it fails it is scheduled; a GiveUp is thrown on. */
  (body: B): Promise<R | { scheduled: Receipt }>;
  /** Not now. */
  schedule(body: B, options?: ScheduleOptions): Promise<Receipt>;
}

export interface AskOptions {
  headers?: Record<string, string>;
  timeoutMs?: number;
}

export class Client {
  constructor(url: string, options?: {
    project?: string;
    token?: string;
    /** For one call, repeats included, and for one request; 10,000. */
    timeoutMs?: number;
    /** Told what there is nobody to return it to. */
    log?: (message: string) => void;
  });
  /** One request of any kind; resolves to the JSON of the answer. Not repeated. */
  ask(method: string, path: string, body?: unknown, options?: AskOptions): Promise<any>;
  /** Hands an event over; resolves once it is on the server's disk. Repeats carry the same key: nothing is there twice. */
  schedule(type: string, body: Body, options?: ScheduleOptions): Promise<Receipt>;
  /** Says how events of a type are run. Once a type. */
  retryable<B = any, R = any>(type: string, run: (body: B, call: Call) => R | Promise<R>,
                              options?: ScheduleOptions): Retryable<B, R>;
  /** Starts loops that claim what was scheduled (all registered types unless told which), here or in any other process. */
  start(options?: { types?: string[]; concurrency?: number; leaseS?: number; waitMs?: number }): void;
  /** Waits for the calls and claims under way. */
  stop(): Promise<void>;
  /** A session of a worker fleet, with heartbeats in the background; see docs/work.md. */
  session(options?: { component?: string; runtime?: string; intervalS?: number }): Promise<Session>;
}

/** One that has expired is replaced by a new one at the next claim. */
export interface Session {
  /** undefined: nothing to do. */
  claim(process: string, options: { kind?: string; candidates?: string[]; strict?: boolean; ignoreBackoff?: boolean;
                                    waitMs?: number }): Promise<Work | undefined>;
  close(): Promise<void>;
}

/** Held work: end it by one of the three. Stale: it was no longer held, nothing was changed. */
export interface Work {
  id: string;
  entity: string;
  process: string;
  value: any;
  /** Of the backoff; 0: the last run did not fail. */
  previousIntervalS: number;
  lost(): boolean;
  finish(patch?: object): Promise<any>;
  fail(cause: string, options?: { backoff?: object | null }): Promise<any>;
  cancel(): Promise<any>;
}
