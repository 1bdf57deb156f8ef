// Command peer is the tour on the official Go SDK: "peer server stdio|http" is its server, which over HTTP prints a line
// "ready URL"; "peer client http|sse auto|REVISION URL" is its client, with the bearer in GATEHOUSE_TOKEN.
package main

import (
	"fmt"
	"os"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "server":
		err = serve(os.Args[2])
	case len(os.Args) == 5 && os.Args[1] == "client":
		err = visit(os.Args[2], os.Args[3], os.Args[4])
	default:
		err = fmt.Errorf("usage: peer server stdio|http, peer client http|sse auto|REVISION URL")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
