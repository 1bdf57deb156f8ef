"""The tour as a client on the official Python SDK: `python client.py http|sse auto|legacy URL`, the bearer in GATEHOUSE_TOKEN.

Prints `ok NAME` or `not ok NAME: REASON` for each step.
"""

import asyncio
import os
import sys
import warnings

import httpx2
from mcp import Client, MCPDeprecationWarning, MCPError, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

warnings.filterwarnings("ignore", category=MCPDeprecationWarning)

TRANSPORT, MODE, URL = sys.argv[1:4]
HEADERS = {"authorization": f"Bearer {os.environ['GATEHOUSE_TOKEN']}"}
heard = []
logged = []
roots = ["before"]


async def sample(context, params):
    return types.CreateMessageResult(role="assistant", model="a model", content=types.TextContent(text=f"sampled with {params.max_tokens}"))


async def elicit(context, params):
    if isinstance(params, types.ElicitRequestURLParams):
        return types.ElicitResult(action="accept")
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def list_roots(context):
    return types.ListRootsResult(roots=[types.Root(uri=f"file:///{path}") for path in roots])


async def on_log(params):
    logged.append(params)


async def on_message(message):
    heard.append(message)


async def until(what, condition):
    for _ in range(1000):
        if await condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"waited in vain for {what}")


def heard_of(kind):
    return [message for message in heard if isinstance(message, kind)]


async def steps(client):
    async def call(name, **args):
        return (await client.call_tool(name, args)).content[0].text

    async def ping():
        await client.send_ping()

    async def lists():
        names, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert "echo" in names and "link" in names, names

    async def calls():
        result = await client.call_tool("echo", {"text": "Grüße"})
        assert result.content[0].text == "Grüße" and result.structured_content == {"text": "Grüße"}, result
        assert (await client.call_tool("fail", {})).is_error
        try:
            await client.call_tool("nobody", {})
        except MCPError as error:
            assert error.code == -32602, error
        else:
            raise AssertionError("an unknown tool was answered")

    async def content():
        kinds = [block.type for block in (await client.call_tool("content", {})).content]
        assert kinds == ["text", "image", "resource", "audio", "resource_link"], kinds

    async def progress():
        seen = []

        async def on_progress(step, total, message):
            seen.append((step, total))

        await client.call_tool("progress", {"steps": 3}, progress_callback=on_progress)
        assert seen[:2] == [(1, 3), (2, 3)], seen

    async def cancel():
        before = int(await call("cancelled"))
        started = asyncio.Event()

        async def on_progress(step, total, message):
            started.set()

        calling = asyncio.create_task(client.call_tool("wait", {}, progress_callback=on_progress))
        await started.wait()
        calling.cancel()

        async def told():
            return int(await call("cancelled")) == before + 1

        await until("the server to hear of it", told)

    async def resources():
        assert [resource.uri for resource in (await client.list_resources()).resources] == ["test://one"]
        templates = await client.list_resource_templates()
        assert [template.uri_template for template in templates.resource_templates] == ["test://item/{id}"]
        assert (await client.read_resource("test://item/7")).contents[0].text == "item 7"

    async def subscribes():
        await client.subscribe_resource("test://one")

        async def updated():
            assert await call("touch") == "touched"
            return any(message.params.uri == "test://one" for message in heard_of(types.ResourceUpdatedNotification))

        await until("the update", updated)
        await client.unsubscribe_resource("test://one")
        assert await call("touch") == "nobody subscribed"

    async def prompts():
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["greet"]
        assert (await client.get_prompt("greet", {"who": "Ada"})).messages[0].content.text == "hello Ada"

    async def completes():
        completed = await client.complete(types.PromptReference(name="greet"), {"name": "who", "value": "al"})
        assert completed.completion.values == ["alpha", "alpine"], completed
        completed = await client.complete(types.ResourceTemplateReference(uri="test://item/{id}"), {"name": "id", "value": "be"})
        assert completed.completion.values == ["beta"], completed

    async def logs():
        await client.set_logging_level("info")
        await call("log")

        async def there():
            return any(line.data == "a line" and line.level == "info" for line in logged)

        await until("a line of the log", there)

    async def changes():
        async def told():
            await call("grow")
            return len(heard_of(types.ToolListChangedNotification)) > 0

        await until("the change", told)

    async def samples():
        assert await call("sample") == "sampled with 77"

    async def shows_roots():
        assert await call("roots") == "file:///before"
        told = int(await call("rootsChanges"))
        roots[0] = "after"
        await client.send_roots_list_changed()

        async def changed():
            return int(await call("rootsChanges")) == told + 1

        await until("the server to be told", changed)
        assert await call("roots") == "file:///after"

    async def fills_in():
        assert await call("elicit") == "accept Ada"

    async def visits_a_page():
        assert await call("link") == "accept"

        async def done():
            return len(heard_of(types.ElicitCompleteNotification)) > 0

        await until("the page to be done", done)

    tour = {
        "ping": ping, "tools/list": lists, "tools/call": calls, "content": content, "progress": progress, "cancel": cancel, "resources": resources,
        "subscribe": subscribes, "prompts": prompts, "completion": completes, "logging": logs, "list_changed": changes, "sampling": samples,
        "roots": shows_roots, "elicitation, form": fills_in, "elicitation, url": visits_a_page,
    }
    # 2026-07-28 has no such requests, and no news of roots and pages; its listen streams are another tour.
    gone = {"ping", "subscribe", "logging", "list_changed", "roots", "elicitation, url"} if client.protocol_version >= "2026-07-28" else set()
    return {name: run for name, run in tour.items() if name not in gone}


async def main():
    async with httpx2.AsyncClient(headers=HEADERS, timeout=httpx2.Timeout(30, read=300)) as http:
        transport = streamable_http_client(URL, http_client=http) if TRANSPORT == "http" else sse_client(URL, headers=HEADERS)
        async with Client(
            transport, mode=MODE, sampling_callback=sample, elicitation_callback=elicit, list_roots_callback=list_roots,
            logging_callback=on_log, message_handler=on_message,
        ) as client:
            for name, run in (await steps(client)).items():
                try:
                    async with asyncio.timeout(20):
                        await run()
                except Exception as error:
                    print(f"not ok {name}: {type(error).__name__} {error}".replace("\n", " "), flush=True)
                else:
                    print(f"ok {name}", flush=True)


asyncio.run(main())
