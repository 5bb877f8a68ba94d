// OpenClaw: a compaction provider whose summaries are judged. `winnow hosts install openclaw`, then set WINNOW_API_KEY and
// `agents.defaults.compaction.provider: "winnow"`.
//
// A provider has to write the summary itself: OpenClaw's model is asked for the five sections that OpenClaw uses. Whatever fails is thrown,
// and OpenClaw falls back to its built-in summary, unpruned: that is reported as `bypassed`.

import { messages, task } from "./messages.ts";
import { bypassed, ended, judge, settings, type Message } from "./winnow.ts";

// The part of OpenClaw's plugin API that is used (2026.9).
interface Summarize {
  messages: unknown[];
  signal?: AbortSignal;
  customInstructions?: string;
  summarizationInstructions?: { identifierPolicy?: string; identifierInstructions?: string };
  previousSummary?: string;
}
interface Provider {
  id: string;
  label: string;
  summarize(asked: Summarize): Promise<string>;
}
interface Session {
  sessionId?: string;
  sessionKey?: string;
}
interface SessionEnd extends Session {
  reason?: string;
  nextSessionId?: string;
}
interface Api {
  registerCompactionProvider(provider: Provider): void;
  on(hook: "before_compaction", handler: (event: unknown, context: Session) => void): void;
  on(hook: "session_end", handler: (event: SessionEnd, context: Session) => void): void;
  runtime: { llm: { complete(request: object): Promise<{ text: string }> } };
}

/** Characters of one output that the summarizer sees; the judge sees all of it. */
const OUTPUT_CHARS = 2_000;
/** Sessions whose number of compactions is remembered. */
const SESSIONS = 10_000;
/** Why a session is over. A compaction, a restart or a shutdown is no end: the conversation goes on. */
const OVER = new Set(["new", "reset", "idle", "daily", "deleted"]);

export default {
  id: "winnow",
  name: "Winnow",
  description: "Removes entries without a source from compaction summaries",
  register(api: Api): void {
    const to = settings("openclaw");
    if (!to) return;
    let session = "openclaw"; // a provider is not told the session; this hook is, just before
    const done = new Map<string, number>();
    const renamed = new Map<string, string>(); // a compaction may give a session another id: its run stays the same
    api.on("before_compaction", (_event, context) => {
      const id = context.sessionId ?? context.sessionKey ?? session;
      session = renamed.get(id) ?? id;
    });
    api.on("session_end", (event, context) => {
      const id = event.sessionId ?? context.sessionId ?? context.sessionKey;
      if (!id) return;
      const run = renamed.get(id) ?? id;
      if (event.reason === "compaction" && event.nextSessionId) {
        if (renamed.delete(id) || done.has(run)) remember(renamed, event.nextSessionId, run);
      } else if (OVER.has(event.reason ?? "")) {
        renamed.delete(id);
        if (done.delete(run)) void ended(to, run);
      }
    });
    api.registerCompactionProvider({
      id: "winnow",
      label: "Winnow",
      async summarize(asked: Summarize): Promise<string> {
        const run = session;
        try {
          const history = messages(asked.messages);
          const { text } = await api.runtime.llm.complete({
            messages: [{ role: "user", content: prompt(history, asked) }],
            purpose: "winnow.compaction",
            signal: asked.signal,
          });
          if (!text?.trim()) throw new Error("the model gave no summary");
          const index = (done.get(run) ?? 0) + 1;
          remember(done, run, index);
          const result = await judge(
            to,
            {
              run,
              index,
              candidate: text,
              history,
              task: task(asked.messages),
              previous_summary: asked.previousSummary,
              custom_instructions: asked.customInstructions,
            },
            asked.signal,
          );
          // OpenClaw takes an empty summary for a failure, and would write one of its own, unpruned.
          if (result.summary.trim()) return result.summary;
          bypassed(to, run, "empty_summary");
          return text;
        } catch (error) {
          bypassed(to, run, asked.signal?.aborted ? "aborted" : "adapter_failed");
          throw error;
        }
      },
    });
  },
};

/** Put the newest last, and forget the oldest of too many. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > SESSIONS) map.delete(map.keys().next().value as string);
}

/** What the model is asked: OpenClaw's sections, in OpenClaw's order. */
function prompt(history: Message[], asked: Summarize): string {
  const told = history.map((one) => `[${one.kind}${one.tool ? ` ${one.tool}` : ""}] ${one.text.slice(0, OUTPUT_CHARS)}`);
  return [
    "Write the checkpoint that replaces the conversation below. Use exactly these headings, in this order, with bullet lists below them:",
    "## Decisions\n## Open TODOs\n## Constraints/Rules\n## Pending user asks\n## Exact identifiers",
    "State what tools reported and what the user asked. Where a section has nothing, write None.",
    asked.summarizationInstructions?.identifierPolicy === "off" ? "" : "Copy identifiers, paths and addresses exactly.",
    asked.summarizationInstructions?.identifierInstructions ?? "",
    asked.customInstructions ?? "",
    asked.previousSummary ? `<previous_checkpoint>\n${asked.previousSummary}\n</previous_checkpoint>` : "",
    `<conversation>\n${told.join("\n\n")}\n</conversation>`,
  ]
    .filter(Boolean)
    .join("\n\n");
}
