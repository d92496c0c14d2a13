package main

import (
	"context"
	"os"
	"os/signal"
)

func main() {
	// The first interrupt cancels the work in hand, which then ends cleanly; after
	// it the default is back, so that a second one ends the program at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], stdio())
	stop()
	os.Exit(code)
}
