"""The server of the tour on the official Python SDK: `python server.py stdio|http`. Over HTTP, one line says `ready URL`.

One client at a time: what it keeps, it keeps for the process.
"""

import asyncio
import socket
import sys
import warnings

import uvicorn
from mcp import MCPDeprecationWarning, MCPError, types
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server

# Roots, sampling and logging are what is to be shown.
warnings.filterwarnings("ignore", category=MCPDeprecationWarning)

ONE = "test://one"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
EMBEDDED = types.TextResourceContents(uri=ONE, mime_type="text/plain", text="one")
WORDS = ["alpha", "alpine", "beta"]

tools = ["echo", "progress", "wait", "cancelled", "content", "fail", "touch", "log", "grow", "sample", "roots", "rootsChanges", "elicit", "link"]
subscribed: set[str] = set()
counts = {"cancelled": 0, "roots": 0}


def text(value, **more):
    return types.CallToolResult(content=[types.TextContent(text=value)], **more)


async def call_tool(ctx, params):
    args = params.arguments or {}
    session, request = ctx.session, ctx.request_id
    match params.name:
        case "echo":
            return text(args["text"], structured_content={"text": args["text"]})
        case "progress":
            for step in range(1, args["steps"] + 1):
                await session.report_progress(step, args["steps"])
                await asyncio.sleep(0.005)
            return text("done")
        case "wait":
            try:
                await session.report_progress(0, 1)
                await asyncio.Event().wait()
            finally:
                counts["cancelled"] += 1
        case "cancelled":
            return text(str(counts["cancelled"]))
        case "content":
            return types.CallToolResult(content=[
                types.TextContent(text="text"),
                types.ImageContent(data=PNG, mime_type="image/png"),
                types.EmbeddedResource(resource=EMBEDDED),
                types.AudioContent(data="YXVkaW8=", mime_type="audio/wav"),
                types.ResourceLink(uri=ONE, name="one"),
            ])
        case "fail":
            return text("it went wrong", is_error=True)
        case "touch":
            if ONE not in subscribed:
                return text("nobody subscribed")
            await session.send_resource_updated(ONE)
            return text("touched")
        case "log":
            await session.send_log_message("info", "a line", "fixture", related_request_id=request)
            return text("logged")
        case "grow":
            if "grown" not in tools:
                tools.append("grown")
            await session.send_tool_list_changed()
            return text("grown")
        case "sample":
            hello = types.SamplingMessage(role="user", content=types.TextContent(text="hello"))
            sampled = await session.create_message([hello], max_tokens=77, related_request_id=request)
            return text(sampled.content.text)
        case "roots":
            # The SDK asks on the connection's own stream; nothing names the call.
            listed = await session.list_roots()
            return text(" ".join(str(root.uri) for root in listed.roots))
        case "rootsChanges":
            return text(str(counts["roots"]))
        case "elicit":
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            answer = await session.elicit_form("who?", schema, related_request_id=request)
            return text(answer.action if answer.content is None else f"{answer.action} {answer.content['name']}")
        case "link":
            answer = await session.elicit_url("sign", "https://example.com/sign", "page-1", related_request_id=request)
            await session.send_elicit_complete("page-1", related_request_id=request)
            return text(answer.action)
    raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")


async def list_tools(ctx, params):
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in tools])


async def list_resources(ctx, params):
    return types.ListResourcesResult(resources=[types.Resource(uri=ONE, name="one")])


async def list_templates(ctx, params):
    return types.ListResourceTemplatesResult(resource_templates=[types.ResourceTemplate(uri_template="test://item/{id}", name="item")])


async def read_resource(ctx, params):
    if params.uri == ONE:
        return types.ReadResourceResult(contents=[EMBEDDED])
    if not params.uri.startswith("test://item/"):
        raise MCPError(-32002, "Resource not found", {"uri": params.uri})
    item = params.uri.removeprefix("test://item/")
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=f"item {item}")])


async def subscribe(ctx, params):
    subscribed.add(params.uri)
    return types.EmptyResult()


async def unsubscribe(ctx, params):
    subscribed.discard(params.uri)
    return types.EmptyResult()


async def list_prompts(ctx, params):
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet", arguments=[types.PromptArgument(name="who", required=True)])])


async def get_prompt(ctx, params):
    hello = types.TextContent(text=f"hello {(params.arguments or {}).get('who')}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=hello)])


async def complete(ctx, params):
    return types.CompleteResult(completion=types.Completion(values=[word for word in WORDS if word.startswith(params.argument.value)]))


async def set_level(ctx, params):
    return types.EmptyResult()


async def roots_changed(ctx, params):
    counts["roots"] += 1


server = Server(
    "fixture", version="1",
    on_list_tools=list_tools, on_call_tool=call_tool, on_list_resources=list_resources, on_list_resource_templates=list_templates,
    on_read_resource=read_resource, on_subscribe_resource=subscribe, on_unsubscribe_resource=unsubscribe, on_list_prompts=list_prompts,
    on_get_prompt=get_prompt, on_completion=complete, on_set_logging_level=set_level, on_roots_list_changed=roots_changed,
)


async def over_stdio():
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options(NotificationOptions(tools_changed=True)))


async def over_http():
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"ready http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
    await uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).serve(sockets=[listening])


asyncio.run(over_stdio() if sys.argv[1] == "stdio" else over_http())
