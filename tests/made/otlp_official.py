"""The current GenAI span attributes, written by OpenTelemetry's own opentelemetry-util-genai (spans with content): otlp_official.py OUT.jsonl"""
import base64
import json
import os
import sys

os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.util.genai import types as t
from opentelemetry.util.genai.handler import TelemetryHandler


def hexed(o):
    if isinstance(o, dict):
        return {k: base64.b64decode(v).hex() if k in ("traceId", "spanId", "parentSpanId") else hexed(v) for k, v in o.items()}
    return [hexed(x) for x in o] if isinstance(o, list) else o


class Lines(SpanExporter):
    def export(self, spans):
        with open(sys.argv[1], "a") as f:
            f.write(json.dumps(hexed(MessageToDict(encode_spans(spans), use_integers_for_enums=True)), ensure_ascii=False) + "\n")
        return SpanExportResult.SUCCESS


open(sys.argv[1], "w").close()
p = TracerProvider(resource=Resource.create({"service.name": "made-official"}))
p.add_span_processor(SimpleSpanProcessor(Lines()))
h = TelemetryHandler(tracer_provider=p)
ask = [t.InputMessage(role="user", parts=[t.Text(content="Weather in Oslo?"), t.Uri(mime_type="image/png", modality="image", uri="https://example.com/a.png"),
                                          t.Blob(mime_type="image/png", modality="image", content=b"\x89PNG")])]
call = [t.Reasoning(content="I need the weather."), t.ToolCallRequest(id="call_1", name="get_weather", arguments={"city": "Oslo"})]


def chat(messages, parts, finish):
    i = h.inference("openai", request_model="gpt-4o")
    i.input_messages, i.system_instruction = messages, [t.Text(content="Be brief.")]
    i.tool_definitions = [t.FunctionToolDefinition(name="get_weather", description="Weather of a city", parameters={"type": "object"})]
    i.output_messages = [t.OutputMessage(role="assistant", parts=parts, finish_reason=finish)]
    i.response_model_name, i.response_id, i.finish_reasons, i.input_tokens, i.output_tokens = "gpt-4o-2024-08-06", "chatcmpl-made", [finish], 40, 9
    i.stop()


chat(ask, call, "tool_calls")
tool = h.tool("get_weather", tool_call_id="call_1", tool_type="function")
tool.arguments, tool.tool_result = {"city": "Oslo"}, "12 degrees"
tool.stop()
chat(ask + [t.InputMessage(role="assistant", parts=call), t.InputMessage(role="tool", parts=[t.ToolCallResponse(id="call_1", response="12 degrees")])], [t.Text(content="It is 12 degrees in Oslo.")], "stop")
p.shutdown()
