"""A chat with one tool call, recorded by a real instrumentation, as OTLP JSON lines (one ExportTraceServiceRequest a line).

    otlp_dialects.py official|official_events|openinference|openllmetry|openllmetry_legacy OUT.jsonl [LOGS.jsonl]

official            opentelemetry-instrumentation-openai-v2, current gen_ai.* attributes with content on the spans
official_events     the same, content as log events (older convention), written to LOGS.jsonl
openinference       openinference-instrumentation-openai
openllmetry         opentelemetry-instrumentation-openai (Traceloop)
The OpenAI client is real; its HTTP transport is a stub. Around it stand two hand-made spans: agent and tool.
"""
import base64
import json
import os
import sys

kind, out = sys.argv[1:3]
if kind == "official":
    os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
elif kind == "official_events":
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "true"
os.environ["TRACELOOP_TRACE_CONTENT"] = "true"

import httpx
import openai
from google.protobuf.json_format import MessageToDict
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult


def hexed(o):
    """Protobuf JSON writes bytes as base64; OTLP JSON wants trace and span ids as hex and enums as numbers."""
    if isinstance(o, dict):
        return {k: base64.b64decode(v).hex() if k in ("traceId", "spanId", "parentSpanId") else hexed(v) for k, v in o.items()}
    return [hexed(x) for x in o] if isinstance(o, list) else o


class Lines(SpanExporter):
    def export(self, spans):
        with open(out, "a") as f:
            f.write(json.dumps(hexed(MessageToDict(encode_spans(spans), use_integers_for_enums=True)), ensure_ascii=False) + "\n")
        return SpanExportResult.SUCCESS


open(out, "w").close()
provider = TracerProvider(resource=Resource.create({"service.name": "made-" + kind}))
provider.add_span_processor(SimpleSpanProcessor(Lines()))
trace.set_tracer_provider(provider)
kw = {"tracer_provider": provider}
if len(sys.argv) > 3:
    from opentelemetry._logs import set_logger_provider
    from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
    open(sys.argv[3], "w").close()

    class LogLines:
        def export(self, batch):
            with open(sys.argv[3], "a") as f:
                f.write(json.dumps(hexed(MessageToDict(encode_logs(batch), use_integers_for_enums=True)), ensure_ascii=False) + "\n")

        def shutdown(self):
            pass

        def force_flush(self, timeout_millis=0):
            return True

    lp = LoggerProvider()
    lp.add_log_record_processor(SimpleLogRecordProcessor(LogLines()))
    set_logger_provider(lp)
    kw["logger_provider"] = lp
    try:  # before 2026 the instrumentation asked for an event logger
        from opentelemetry.sdk._events import EventLoggerProvider
        kw["event_logger_provider"] = EventLoggerProvider(lp)
    except ImportError:
        pass
if kind.startswith("official"):
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
elif kind == "openinference":
    from openinference.instrumentation.openai import OpenAIInstrumentor
else:
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor
OpenAIInstrumentor().instrument(**kw)


def reply(request):
    q = json.loads(request.content)
    done = any(m["role"] == "tool" for m in q["messages"])
    msg = ({"role": "assistant", "content": "It is 12 degrees in Oslo.", "refusal": None} if done else
           {"role": "assistant", "content": None, "refusal": None, "tool_calls": [{"id": "call_1", "type": "function", "function": {
               "name": "get_weather", "arguments": "{\"city\": \"Oslo\"}"}}]})
    return httpx.Response(200, json={"id": "chatcmpl-made", "object": "chat.completion", "created": 1763700000, "model": "gpt-4o-2024-08-06",
        "choices": [{"index": 0, "message": msg, "finish_reason": "stop" if done else "tool_calls", "logprobs": None}],
        "usage": {"prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49, "prompt_tokens_details": {"cached_tokens": 10}}})


client = openai.OpenAI(api_key="made-up", base_url="http://stub/v1", http_client=httpx.Client(transport=httpx.MockTransport(reply)))
tools = [{"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]
messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Weather in Oslo?"},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}]
tracer = trace.get_tracer("made.agent")
OI = kind == "openinference"
with tracer.start_as_current_span("invoke_agent weather", attributes={"openinference.span.kind": "AGENT", "session.id": "s1", "input.value": "Weather in Oslo?"} if OI
                                  else {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "weather", "gen_ai.conversation.id": "s1"}):
    m = client.chat.completions.create(model="gpt-4o", messages=messages, tools=tools, temperature=0.2).choices[0].message
    messages.append(m.model_dump(exclude_none=True))
    with tracer.start_as_current_span("execute_tool get_weather", attributes={"openinference.span.kind": "TOOL", "tool.name": "get_weather",
            "input.value": "{\"city\": \"Oslo\"}", "output.value": "12 degrees"} if OI else {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "call_1", "gen_ai.tool.call.arguments": "{\"city\": \"Oslo\"}", "gen_ai.tool.call.result": "12 degrees", "gen_ai.tool.type": "function"}):
        messages.append({"role": "tool", "tool_call_id": "call_1", "content": "12 degrees"})
    client.chat.completions.create(model="gpt-4o", messages=messages, tools=tools)
provider.shutdown()
