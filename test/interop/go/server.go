package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const one = "test://one"
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"

// One client at a time: what it keeps, it keeps for the process.
var subscribed atomic.Bool
var cancelled, rootsChanges atomic.Int32

func text(value string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: value}}}
}

func serve(transport string) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "fixture", Version: "1"}, &mcp.ServerOptions{
		PageSize: 6,
		CompletionHandler: func(_ context.Context, request *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			values := []string{}
			for _, word := range []string{"alpha", "alpine", "beta"} {
				if strings.HasPrefix(word, request.Params.Argument.Value) {
					values = append(values, word)
				}
			}
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values}}, nil
		},
		SubscribeHandler: func(context.Context, *mcp.SubscribeRequest) error {
			subscribed.Store(true)
			return nil
		},
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error {
			subscribed.Store(false)
			return nil
		},
		RootsListChangedHandler: func(context.Context, *mcp.RootsListChangedRequest) { rootsChanges.Add(1) },
	})
	addTools(server)
	embedded := func(_ context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		uri := request.Params.URI
		value := "one"
		if id, isItem := strings.CutPrefix(uri, "test://item/"); isItem {
			value = "item " + id
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: value}}}, nil
	}
	server.AddResource(&mcp.Resource{URI: one, Name: "one"}, embedded)
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://item/{id}", Name: "item"}, embedded)
	server.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "who", Required: true}}},
		func(_ context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			hello := &mcp.TextContent{Text: "hello " + request.Params.Arguments["who"]}
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: hello}}}, nil
		})

	if transport == "stdio" {
		return server.Run(context.Background(), &mcp.StdioTransport{})
	}
	listening, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("ready http://%s/mcp\n", listening.Addr())
	return http.Serve(listening, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
}

func addTools(server *mcp.Server) {
	add := func(name string, run func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, error)) {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			args := map[string]any{}
			if len(request.Params.Arguments) > 0 {
				if err := json.Unmarshal(request.Params.Arguments, &args); err != nil {
					return nil, err
				}
			}
			return run(ctx, request, args)
		})
	}
	progress := func(ctx context.Context, request *mcp.CallToolRequest, step, total float64) error {
		token := request.Params.GetProgressToken()
		if token == nil {
			return nil
		}
		return request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: step, Total: total})
	}
	count := func(counter *atomic.Int32) func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, error) {
		return func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, error) {
			return text(fmt.Sprint(counter.Load())), nil
		}
	}

	add("echo", func(_ context.Context, _ *mcp.CallToolRequest, args map[string]any) (*mcp.CallToolResult, error) {
		result := text(args["text"].(string))
		result.StructuredContent = map[string]any{"text": args["text"]}
		return result, nil
	})
	add("progress", func(ctx context.Context, request *mcp.CallToolRequest, args map[string]any) (*mcp.CallToolResult, error) {
		total := args["steps"].(float64)
		for step := 1.0; step <= total; step++ {
			if err := progress(ctx, request, step, total); err != nil {
				return nil, err
			}
			time.Sleep(5 * time.Millisecond)
		}
		return text("done"), nil
	})
	add("wait", func(ctx context.Context, request *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, error) {
		if err := progress(ctx, request, 0, 1); err != nil {
			return nil, err
		}
		<-ctx.Done()
		cancelled.Add(1)
		return nil, ctx.Err()
	})
	add("cancelled", count(&cancelled))
	add("rootsChanges", count(&rootsChanges))
	add("content", func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, error) {
		image, err := base64.StdEncoding.DecodeString(png)
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "text"},
			&mcp.ImageContent{Data: image, MIMEType: "image/png"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: one, MIMEType: "text/plain", Text: "one"}},
			&mcp.AudioContent{Data: []byte("audio"), MIMEType: "audio/wav"},
			&mcp.ResourceLink{URI: one, Name: "one"},
		}}, err
	})
	add("fail", func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, error) {
		result := text("it went wrong")
		result.IsError = true
		return result, nil
	})
	add("touch", func(ctx context.Context, _ *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, error) {
		if !subscribed.Load() {
			return text("nobody subscribed"), nil
		}
		return text("touched"), server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: one})
	})
	add("log", func(ctx context.Context, request *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, error) {
		return text("logged"), request.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Logger: "fixture", Data: "a line"})
	})
	add("grow", func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, error) {
		// The SDK tells of the change by itself.
		add("grown", count(&cancelled))
		return text("grown"), nil
	})
	add("sample", func(ctx context.Context, request *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, error) {
		sampled, err := request.Session.CreateMessage(ctx, &mcp.CreateMessageParams{
			MaxTokens: 77, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "hello"}}},
		})
		if err != nil {
			return nil, err
		}
		return text(sampled.Content.(*mcp.TextContent).Text), nil
	})
	add("roots", func(ctx context.Context, request *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, error) {
		listed, err := request.Session.ListRoots(ctx, nil)
		if err != nil {
			return nil, err
		}
		uris := []string{}
		for _, root := range listed.Roots {
			uris = append(uris, root.URI)
		}
		return text(strings.Join(uris, " ")), nil
	})
	add("elicit", func(ctx context.Context, request *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, error) {
		schema := map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}
		answer, err := request.Session.Elicit(ctx, &mcp.ElicitParams{Message: "who?", RequestedSchema: schema})
		if err != nil {
			return nil, err
		}
		if answer.Action != "accept" {
			return text(answer.Action), nil
		}
		return text(fmt.Sprintf("accept %v", answer.Content["name"])), nil
	})
	add("link", func(ctx context.Context, request *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, error) {
		answer, err := request.Session.Elicit(ctx, &mcp.ElicitParams{Mode: "url", Message: "sign", URL: "https://example.com/sign", ElicitationID: "page-1"})
		if err != nil {
			return nil, err
		}
		return text(answer.Action), request.Session.NotifyElicitationComplete(ctx, &mcp.ElicitationCompleteParams{ElicitationID: "page-1"})
	})
}
