// Vercel AI SDK telemetry (ai.* and its gen_ai.* attributes) as OTLP JSON: node vercel_ai.mjs OUT.jsonl   (run in a folder with ai, zod, @opentelemetry/*)
import { appendFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
const require = createRequire(process.cwd() + '/');
const { generateText, tool, stepCountIs } = require('ai');
const { MockLanguageModelV2 } = require('ai/test');
const { z } = require('zod');
const { NodeTracerProvider, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-node');
const { JsonTraceSerializer } = require('@opentelemetry/otlp-transformer');
const out = process.argv[2];
writeFileSync(out, '');
const exporter = { export(spans, cb) { appendFileSync(out, new TextDecoder().decode(JsonTraceSerializer.serializeRequest(spans)) + '\n'); cb({ code: 0 }); }, shutdown: async () => {} };
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
provider.register();
let n = 0;
const usage = { inputTokens: 40, outputTokens: 9, totalTokens: 49, cachedInputTokens: 10, reasoningTokens: 2 };
const model = new MockLanguageModelV2({ provider: 'mock', modelId: 'mock-model', doGenerate: async () => n++ === 0
  ? { finishReason: 'tool-calls', usage, warnings: [], content: [{ type: 'reasoning', text: 'I need the weather.' }, { type: 'tool-call', toolCallId: 'call_1', toolName: 'get_weather', input: '{"city":"Oslo"}' }] }
  : { finishReason: 'stop', usage, warnings: [], content: [{ type: 'text', text: 'It is 12 degrees in Oslo.' }] } });
const r = await generateText({ model, system: 'Be brief.', prompt: 'Weather in Oslo?', stopWhen: stepCountIs(3),
  tools: { get_weather: tool({ description: 'Weather of a city', inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => ({ city, degrees: 12 }) }) },
  experimental_telemetry: { isEnabled: true, functionId: 'made', metadata: { sessionId: 's1', userId: 'u1' } } });
console.log(r.text);
await provider.forceFlush();
