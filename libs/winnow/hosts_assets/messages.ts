// Messages of pi and OpenClaw, which have one form, as messages of a boundary.

import type { Message } from "./winnow.ts";

interface Block {
  type?: string;
  text?: string;
  name?: string;
  arguments?: unknown;
}

interface Said {
  role?: string;
  content?: string | Block[];
  toolName?: string;
  toolCallId?: string;
  isError?: boolean;
  command?: string;
  output?: string;
  exitCode?: number | null;
}

/** Tools whose output is another model's text. */
const SUBAGENTS = new Set(["sessions_spawn", "subagent", "task"]);

/** What was said, in order. Thinking is left out; the host's own messages are notices; what is empty is nothing. */
export function messages(said: unknown[]): Message[] {
  return said.map((one) => message((one ?? {}) as Said)).filter((one) => one.text.trim() !== "");
}

/** The first thing that the user asked. */
export function task(said: unknown[]): string | undefined {
  return messages(said).find((one) => one.kind === "user")?.text;
}

function message(said: Said): Message {
  const text = words(said.content);
  switch (said.role) {
    case "user":
      return { kind: "user", text };
    case "assistant":
      return { kind: "action", text: [text, ...calls(said.content)].filter(Boolean).join("\n") };
    case "toolResult": {
      const other = SUBAGENTS.has(said.toolName ?? "");
      return {
        kind: "environment",
        text,
        tool: said.toolName,
        call_id: said.toolCallId,
        // An accepted spawn is flagged as an error by OpenClaw although it is a success.
        is_error: said.isError === true && !other,
        origin: other ? "subagent" : "observation",
      };
    }
    case "bashExecution":
      return { kind: "environment", tool: "bash", text: `$ ${said.command ?? ""}\n${said.output ?? ""}`, is_error: (said.exitCode ?? 0) !== 0 };
    default:
      return { kind: "notice", text };
  }
}

function words(content: string | Block[] | undefined): string {
  if (typeof content === "string") return content;
  return (Array.isArray(content) ? content : [])
    .filter((block) => block?.type === "text" && typeof block.text === "string")
    .map((block) => block.text)
    .join("\n");
}

function calls(content: string | Block[] | undefined): string[] {
  return (Array.isArray(content) ? content : [])
    .filter((block) => block?.type === "toolCall")
    .map((block) => `[tool call] ${block.name}: ${JSON.stringify(block.arguments)}`);
}
