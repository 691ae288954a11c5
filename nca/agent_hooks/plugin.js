// nca's memory in opencode: `nca hooks uninstall opencode` removes this file.
import { spawn } from "node:child_process"

const COMMAND = []
const VARIABLES = {}
const PATIENCE_MS = 100

// One event for nca, and what it tells in answer. An answer that comes later is told with the next event.
const late = new Map()

function ask(session_id, hook_event_name, more = {}) {
  return new Promise((resolve) => {
    let answer = ""
    let waits = true
    const end = (text) => {
      if (!waits) return text && late.set(session_id, text)
      waits = false
      clearTimeout(timer)
      const told = [late.get(session_id), text].filter(Boolean).join("\n\n")
      late.delete(session_id)
      resolve(told)
    }
    const timer = setTimeout(end, PATIENCE_MS, "")
    try {
      const [program, ...words] = COMMAND
      const options = { env: { ...process.env, ...VARIABLES }, stdio: ["pipe", "pipe", "ignore"], detached: true }
      const child = spawn(program, words, options)
      child.on("error", () => end(""))
      child.stdin.on("error", () => {})
      child.stdout.setEncoding("utf8")
      child.stdout.on("data", (piece) => (answer += piece))
      child.on("close", () => end(answer && JSON.parse(answer).hookSpecificOutput.additionalContext))
      child.unref()
      child.stdin.end(JSON.stringify({ session_id, hook_event_name, ...more }))
    } catch {
      end("")
    }
  })
}

export const NcaMemory = async ({ directory }) => {
  const compacted = new Set()
  return {
    event: async ({ event }) => {
      if (event.type !== "session.compacted") return
      compacted.add(event.properties.sessionID)
      await ask(event.properties.sessionID, event.type, { cwd: directory })
    },
    "chat.message": async ({ sessionID }, { message, parts }) => {
      const last = parts.at(-1)
      const text = last && (await ask(sessionID, "chat.message", { cwd: directory }))
      if (!text) return
      compacted.delete(sessionID)
      // Parts are kept in the order of their ids.
      parts.push({ id: `${last.id}0`, sessionID, messageID: message.id, type: "text", synthetic: true, text })
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, result) => {
      const failed = result?.metadata?.exit > 0
      if (typeof result?.output !== "string" || !(failed || compacted.has(sessionID))) return
      const call = { cwd: directory, tool_name: tool, tool_input: args, tool_use_id: callID }
      const text = await ask(sessionID, failed ? "tool.execute.failed" : "tool.execute.after", call)
      if (!text) return
      compacted.delete(sessionID)
      result.output += `\n\n${text}`
    },
    dispose: async () => {
      await ask("", "dispose", { cwd: directory })
    },
  }
}
