// pi: summaries are judged before they replace the history. `winnow hosts install pi`, then set WINNOW_API_KEY.
//
// pi never hands over its own summary, so the extension has pi's own `compact` write it and returns it without its unsupported entries.
// Anything that fails here leaves the compaction to pi.

import { compact } from "@mariozechner/pi-coding-agent";
import { messages, task } from "./messages.ts";
import { bypassed, ended, judge, settings } from "./winnow.ts";

// The part of pi's extension API that is used (pi-coding-agent 0.73).
interface Preparation {
  messagesToSummarize: unknown[];
  turnPrefixMessages: unknown[];
  previousSummary?: string;
  tokensBefore: number;
  firstKeptEntryId: string;
}
interface Entry {
  type: string;
  id: string;
  message?: unknown;
}
interface BeforeCompact {
  preparation: Preparation;
  branchEntries: Entry[];
  customInstructions?: string;
  signal: AbortSignal;
}
interface Auth {
  ok: boolean;
  apiKey?: string;
  headers?: Record<string, string>;
}
interface Context {
  model?: { id: string };
  modelRegistry: { getApiKeyAndHeaders(model: unknown): Promise<Auth> };
  sessionManager: { getSessionId(): string };
}
interface Made {
  summary: string;
  firstKeptEntryId: string;
  tokensBefore: number;
  details?: unknown;
}
interface Shutdown {
  /** Older versions give none: they tell of the end of the process alone. */
  reason?: "quit" | "reload" | "new" | "resume" | "fork";
}
type Handler = (event: BeforeCompact, context: Context) => Promise<{ compaction: Made } | undefined>;
interface Pi {
  on(event: "session_before_compact", handler: Handler): void;
  on(event: "session_shutdown", handler: (event: Shutdown, context: Context) => Promise<void>): void;
}

export default function winnow(pi: Pi): void {
  const to = settings("pi");
  if (!to) return;
  const judged = new Set<string>(); // sessions with a boundary: of others Winnow knows nothing, and need not know that they end
  pi.on("session_shutdown", async (event, context) => {
    const run = context.sessionManager.getSessionId();
    // A reload goes on with the same session. pi waits for this before it leaves.
    if (event.reason !== "reload" && judged.delete(run)) await ended(to, run);
  });
  pi.on("session_before_compact", async (event, context) => {
    const run = context.sessionManager.getSessionId();
    try {
      const { preparation, branchEntries, customInstructions, signal } = event;
      if (!context.model) return undefined;
      const auth = await context.modelRegistry.getApiKeyAndHeaders(context.model);
      if (!auth.ok || !auth.apiKey) {
        bypassed(to, run, "no_model_key");
        return undefined;
      }
      const made: Made = await compact(preparation, context.model, auth.apiKey, auth.headers, customInstructions, signal);
      if (!made.summary.trim()) return undefined;
      const gone = [...preparation.messagesToSummarize, ...preparation.turnPrefixMessages];
      const first = branchEntries.findIndex((entry) => entry.id === made.firstKeptEntryId);
      const stays = first < 0 ? [] : branchEntries.slice(first).flatMap((entry) => (entry.type === "message" ? [entry.message] : []));
      judged.add(run);
      const result = await judge(
        to,
        {
          run,
          index: branchEntries.filter((entry) => entry.type === "compaction").length + 1,
          candidate: made.summary,
          history: messages(gone),
          retained: messages(stays),
          task: task(branchEntries.map((entry) => entry.message)),
          previous_summary: preparation.previousSummary,
          custom_instructions: customInstructions,
          tokens_before: preparation.tokensBefore,
          compressor: context.model.id,
        },
        signal,
      );
      // pi takes an empty summary for a failure, and would write one of its own, unpruned.
      if (!result.summary.trim()) {
        bypassed(to, run, "empty_summary");
        return { compaction: made };
      }
      return { compaction: { ...made, summary: result.summary } };
    } catch {
      bypassed(to, run, event.signal.aborted ? "aborted" : "adapter_failed");
      return undefined;
    }
  });
}
