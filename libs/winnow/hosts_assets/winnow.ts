// Asks a Winnow gateway at a compaction boundary and goes on whatever happens. No dependencies; Node 20 or newer, or Bun.
//
// The deadline is the caller's own, never the host's. What the gateway answers is used only where it is the candidate without whole
// entries: the committed text is rebuilt from the spans of the pruned entries and must have the committed hash.

import { createHash, randomUUID } from "node:crypto";

export type Kind = "action" | "environment" | "user" | "notice";
export type Mode = "shadow" | "annotate" | "enforce";

export interface Message {
  kind: Kind;
  text: string;
  tool?: string;
  call_id?: string;
  is_error?: boolean;
  origin?: "observation" | "echo" | "subagent" | "host_notice" | "recovery";
}

export interface Boundary {
  run: string;
  index: number;
  candidate: string;
  history: Message[];
  retained?: Message[];
  task?: string;
  previous_summary?: string;
  custom_instructions?: string;
  tokens_before?: number;
  compressor?: string;
}

export interface Settings {
  url: string;
  apiKey: string;
  fleet: string;
  mode: Mode;
  host: string;
  deadlineMs: number;
  /** The agent has the tools of `winnow mcp`: said with every report, since a session may end without anybody telling. */
  recoveryTool?: boolean;
}

export interface Decision {
  span: [number, number];
  decision: "kept" | "pruned";
  explanation: string;
}

export interface Result {
  /** What the agent goes on with: the committed text, or its own candidate. */
  summary: string;
  /** Why it is the candidate; undefined where it is the committed text. */
  bypassed?: string;
  /** What became of each entry; empty in shadow mode and where no answer was heard. */
  decisions: Decision[];
}

interface Committed {
  candidate_sha256: string;
  committed_sha256: string | null;
  outcome: string;
  mode: Mode;
  late: boolean;
  decisions: Decision[];
}

interface View {
  boundary_id: string;
  result: Committed | null;
}

/** Bytes of a submission. A larger one needs the Python client, which stores the messages first. */
const BODY_BYTES = 8 * 1024 * 1024;
/** Milliseconds that a report may take; the agent does not wait for it. */
const REPORT_MS = 3_000;
/** The same for the end of a session, which a person who leaves waits for. */
const END_MS = 1_000;
/** Milliseconds before the second try of a request that failed in passing; doubled at each further one. */
const FIRST_PAUSE_MS = 100;
/** Milliseconds that one request asks the gateway to wait: below the 30 s after which proxies in between give up. */
const WAIT_MS = 20_000;
const PASSING = new Set([404, 408, 425, 429, 500, 502, 503, 504]);

class Unheard extends Error {}

/** Settings from the environment (WINNOW_API_KEY and, where they differ from the defaults, WINNOW_GATEWAY_URL, WINNOW_FLEET, WINNOW_MODE,
 * WINNOW_DEADLINE_MS, WINNOW_RECOVERY_TOOL=1); undefined without a key: then the host keeps its own behaviour. */
export function settings(host: string, env: Record<string, string | undefined> = process.env): Settings | undefined {
  const apiKey = env.WINNOW_API_KEY;
  if (!apiKey) return undefined;
  const mode = env.WINNOW_MODE;
  const deadline = Number(env.WINNOW_DEADLINE_MS);
  return {
    url: (env.WINNOW_GATEWAY_URL || "http://127.0.0.1:8484").replace(/\/+$/, ""),
    apiKey,
    fleet: env.WINNOW_FLEET || "default",
    mode: mode === "annotate" || mode === "enforce" ? mode : "shadow",
    host,
    deadlineMs: Number.isFinite(deadline) && deadline > 0 ? Math.min(deadline, 600_000) : 10_000,
    recoveryTool: env.WINNOW_RECOVERY_TOOL === "1" || env.WINNOW_RECOVERY_TOOL === "true",
  };
}

/** What the agent goes on with. Never rejects: whatever is wrong, it is the candidate, and `bypassed` says why. */
export async function judge(to: Settings, boundary: Boundary, signal?: AbortSignal): Promise<Result> {
  const own = (bypassed: string): Result => ({ summary: boundary.candidate, bypassed, decisions: [] });
  let id: string | undefined;
  try {
    const until = Date.now() + to.deadlineMs;
    const stop = AbortSignal.any([AbortSignal.timeout(to.deadlineMs), ...(signal ? [signal] : [])]);
    const body = JSON.stringify(event(to, boundary, until));
    if (Buffer.byteLength(body) > BODY_BYTES) throw new Unheard("too_large");
    // Submit first and wait then: so the boundary's id is known, and reported, also where no answer comes in time.
    let view = await asked(to, "POST", "/v1/boundaries?wait_ms=0", stop, body);
    id = view.boundary_id;
    while (!view.result) {
      const wait = Math.max(0, Math.min(WAIT_MS, until - Date.now() - 50));
      const begun = Date.now();
      view = await asked(to, "GET", `/v1/boundaries/${id}?wait_ms=${wait}`, stop);
      if (!view.result && Date.now() - begun < FIRST_PAUSE_MS) await pause(FIRST_PAUSE_MS, stop);
    }
    const result = settle(boundary.candidate, view.result);
    report(to, boundary.run, "adopted", id, result.bypassed);
    return result;
  } catch (error) {
    const late = error instanceof Error && error.name === "TimeoutError";
    const because = error instanceof Unheard ? error.message : signal?.aborted ? "aborted" : late && id ? "deadline" : "unreachable";
    // Submitted and not answered in time is Winnow's lateness; everything else went past Winnow.
    if (id) report(to, boundary.run, "adopted", id, because);
    if (because !== "deadline") report(to, boundary.run, "bypassed", id, because);
    return own(because);
  }
}

/** Report that a compaction of the host went past Winnow. Returns at once. */
export function bypassed(to: Settings, run: string, because: string): void {
  report(to, run, "bypassed", undefined, because);
}

/** Report that a session is over, so that its run is counted without waiting for its idle time. Never rejects; a host whose process is about to
 * end waits for it, a second at most. */
export function ended(to: Settings, run: string): Promise<void> {
  return report(to, run, "run_ended");
}

/** The committed text, checked against everything that the answer states of it. */
export function settle(candidate: string, said: Committed): Result {
  const own = (bypassed: string): Result => ({ summary: candidate, bypassed, decisions: [] });
  if (said.outcome === "rejected") return own("rejected");
  if (said.late) return own("late");
  if (said.candidate_sha256 !== sha256(candidate)) return own("hash_mismatch");
  const pruned = said.mode === "enforce" ? said.decisions.filter((d) => d.decision === "pruned").map((d) => d.span) : [];
  const text = without(candidate, pruned);
  if (text === undefined || sha256(text) !== said.committed_sha256) return own("hash_mismatch");
  return { summary: text, decisions: said.mode === "shadow" ? [] : said.decisions };
}

/** `text` without the UTF-8 byte ranges; undefined where they overlap, lie outside, or cut a character. */
function without(text: string, spans: [number, number][]): string | undefined {
  const data = Buffer.from(text);
  const kept: Buffer[] = [];
  let at = 0;
  for (const [start, end] of [...spans].sort((a, b) => a[0] - b[0])) {
    if (!(at <= start && start <= end && end <= data.length)) return undefined;
    kept.push(data.subarray(at, start));
    at = end;
  }
  kept.push(data.subarray(at));
  const made = Buffer.concat(kept);
  const said = made.toString();
  return Buffer.from(said).equals(made) ? said : undefined;
}

function event(to: Settings, boundary: Boundary, until: number): object {
  let i = 0;
  const numbered = (messages: Message[]) => messages.map((message) => ({ ...clean(message), i: i++ }));
  return {
    ...boundary,
    history: numbered(boundary.history),
    retained: numbered(boundary.retained ?? []),
    fleet: to.fleet,
    mode: to.mode,
    host: to.host,
    deadline: new Date(until).toISOString(),
  };
}

/** A lone surrogate has no UTF-8 bytes: in messages it becomes U+FFFD, so that one odd output does not cost the boundary. */
function clean(message: Message): Message {
  const named = (value?: string) => value?.replace(/[^\P{C}]/gu, "").slice(0, 200) || undefined;
  return { ...message, text: Buffer.from(message.text).toString(), tool: named(message.tool), call_id: named(message.call_id) };
}

async function asked(to: Settings, method: string, path: string, signal: AbortSignal, body?: string): Promise<View> {
  for (let delay = FIRST_PAUSE_MS; ; delay *= 2) {
    const response = await send(to, method, path, signal, body).catch(() => {
      if (signal.aborted) throw signal.reason;
      return undefined; // no connection: there may be one at the next try
    });
    if (response?.ok) return (await response.json()) as View;
    await response?.body?.cancel();
    if (response && !PASSING.has(response.status)) throw new Unheard(refused(response.status));
    const after = Number(response?.headers.get("retry-after")) * 1000;
    await pause(Math.max(delay, Number.isFinite(after) ? after : 0), signal);
  }
}

function refused(status: number): string {
  if (status === 401 || status === 403) return "unauthorised";
  if (status === 409) return "id_conflict";
  return status === 413 ? "too_large" : "invalid_boundary";
}

function send(to: Settings, method: string, path: string, signal: AbortSignal, body?: string): Promise<Response> {
  const headers = { authorization: `Bearer ${to.apiKey}`, accept: "application/json", "content-type": "application/json" };
  return fetch(to.url + path, { method, headers, signal, body, redirect: "error" });
}

function report(to: Settings, run: string, kind: "adopted" | "bypassed" | "run_ended", boundaryId?: string, because?: string): Promise<void> {
  const said = {
    event_id: randomUUID(),
    fleet: to.fleet,
    run,
    kind,
    at: new Date().toISOString(),
    boundary_id: boundaryId,
    adopted: kind === "adopted" ? (because ? "candidate" : "committed") : undefined,
    because,
    recovery_tool: to.recoveryTool || undefined,
  };
  // Nobody can mend it: a report that is lost is seen as a boundary that nobody adopted, or as a run that went silent.
  const most = kind === "run_ended" ? END_MS : REPORT_MS;
  return send(to, "POST", "/v1/runtime-events", AbortSignal.timeout(most), JSON.stringify(said)).then(
    (response) => response.body?.cancel(),
    () => undefined,
  );
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
