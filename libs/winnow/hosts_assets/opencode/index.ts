// OpenCode: summaries are judged when their text is complete. `winnow hosts install opencode`, then set WINNOW_API_KEY.
//
// `experimental.text.complete` is the one hook that sees finished text and may change it; it fires for each text of each message. The
// message is looked up, and every text that is not that of a compaction is left as it is.

import { bypassed, ended, judge, settings, type Message } from "./winnow.ts";

// The part of OpenCode's plugin API that is used (plugin 1.18).
interface Part {
  type: string;
  text?: string;
  synthetic?: boolean;
  ignored?: boolean;
  tool?: string;
  callID?: string;
  tail_start_id?: string;
  state?: { status: string; input?: unknown; output?: string; error?: string };
}
interface Told {
  info: { id: string; role: string; summary?: unknown; mode?: string; agent?: string; modelID?: string };
  parts: Part[];
}
interface Input {
  client: { session: { messages(request: { path: { id: string } }): Promise<{ data?: Told[] }> } };
}
interface Event {
  type: string;
  properties?: { sessionID?: string; info?: { id?: string } };
}
interface Hooks {
  event: (input: { event: Event }) => Promise<void>;
  "experimental.text.complete": (
    input: { sessionID: string; messageID: string; partID: string },
    output: { text: string },
  ) => Promise<void>;
}

/** Tools whose output is another model's text. */
const SUBAGENTS = new Set(["task"]);

export const Winnow = async ({ client }: Input): Promise<Partial<Hooks>> => {
  const to = settings("opencode");
  if (!to) return {};
  const judged = new Set<string>(); // sessions with a boundary: of others Winnow knows nothing
  return {
    // The one end that OpenCode has: any other session can be taken up again, and is over for Winnow when it has been silent.
    event: async ({ event }) => {
      const run = event.type === "session.deleted" ? (event.properties?.info?.id ?? event.properties?.sessionID) : undefined;
      if (run && judged.delete(run)) void ended(to, run);
    },
    "experimental.text.complete": async (input, output) => {
      try {
        const told = (await client.session.messages({ path: { id: input.sessionID } })).data ?? [];
        const at = told.findIndex((one) => one.info.id === input.messageID);
        if (at < 0 || !compacts(told[at]) || !output.text.trim()) return;
        const before = told.slice(0, at);
        const last = before.findLastIndex(compacts);
        const request = before.flatMap((one) => one.parts).findLast((part) => part.type === "compaction");
        const from = request?.tail_start_id ? before.findIndex((one) => one.info.id === request.tail_start_id) : -1;
        const span = from > last ? before.slice(last + 1, from) : before.slice(last + 1);
        judged.add(input.sessionID);
        const result = await judge(to, {
          run: input.sessionID,
          index: before.filter(compacts).length + 1,
          candidate: output.text,
          history: span.flatMap(messages),
          retained: from > last ? before.slice(from).flatMap(messages) : [],
          task: before.flatMap(messages).find((one) => one.kind === "user")?.text,
          previous_summary: last < 0 ? undefined : text(before[last]),
          compressor: told[at].info.modelID,
        });
        if (result.summary.trim()) output.text = result.summary;
        else bypassed(to, input.sessionID, "empty_summary");
      } catch {
        // The summary stays as OpenCode has it. `judge` reports what concerns Winnow; a failed look-up is the host's own.
      }
    },
  };
};

function compacts(told: Told): boolean {
  const { role, summary, mode, agent } = told.info;
  return role === "assistant" && (summary === true || mode === "compaction" || agent === "compaction");
}

function text(told: Told): string {
  return told.parts.flatMap((part) => (part.type === "text" && part.text ? [part.text] : [])).join("\n");
}

function messages(told: Told): Message[] {
  if (told.info.role !== "assistant") {
    return told.parts.flatMap((part): Message[] =>
      part.type === "text" && part.text && !part.ignored ? [{ kind: part.synthetic ? "notice" : "user", text: part.text }] : [],
    );
  }
  const used = told.parts.filter((part) => part.type === "tool");
  const said = [text(told), ...used.map((part) => `[tool call] ${part.tool}: ${JSON.stringify(part.state?.input)}`)].filter(Boolean).join("\n");
  const outputs = used.map((part): Message => {
    const failed = part.state?.status === "error";
    return {
      kind: "environment",
      text: (failed ? part.state?.error : part.state?.output) ?? "",
      tool: part.tool,
      call_id: part.callID,
      is_error: failed,
      origin: SUBAGENTS.has(part.tool ?? "") ? "subagent" : "observation",
    };
  });
  return [...(said ? [{ kind: "action", text: said } as Message] : []), ...outputs.filter((one) => one.text.trim())];
}
