"""A host that knows a URL alone, by its own OAuth code: `python host.py sdk|fastmcp REDIRECT_URI URL`.

Prints `open URL` where a person has to sign in. The SDK leaves the way back to its host, which reads it from standard
input; FastMCP listens itself. Prints `ok NAME` or `not ok NAME: REASON` for each step.
"""

import asyncio
import os
import sys
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

KIND, REDIRECT, URL = sys.argv[1:4]


class Kept:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def show(url):
    print("open", url, flush=True)


async def way_back():
    line = await asyncio.to_thread(sys.stdin.readline)
    query = {name: values[0] for name, values in parse_qs(urlsplit(line.strip()).query).items()}
    return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))


async def steps(client, texts):
    async def lists():
        tools = await client.list_tools()
        assert any(tool.name == "files__echo" for tool in getattr(tools, "tools", tools))

    async def calls():
        result = await client.call_tool("files__echo", {"text": "hello"})
        assert "hello" in texts(result), result

    for name, step in {"lists tools with its token": lists, "calls a tool": calls}.items():
        try:
            await step()
            print("ok", name, flush=True)
        except Exception as error:
            print(f"not ok {name}: {error!r}", flush=True)


async def by_sdk():
    metadata = OAuthClientMetadata(client_name="A Python host", redirect_uris=[REDIRECT])
    auth = OAuthClientProvider(URL, metadata, Kept(), show, way_back)
    async with httpx2.AsyncClient(auth=auth, timeout=60) as http:
        async with Client(streamable_http_client(URL, http_client=http)) as client:
            await steps(client, lambda result: result.content[0].text)


async def by_fastmcp():
    from fastmcp import Client as FastClient

    client = FastClient(URL, auth="oauth")
    await client.__aenter__()
    await steps(client, lambda result: result.content[0].text)
    # Its listener for the way back would wait until the browser has let go of its connection.
    os._exit(0)


asyncio.run({"sdk": by_sdk, "fastmcp": by_fastmcp}[KIND]())
