// Package control lets other processes of the same user see and steer the one
// process that runs the model: a Unix socket that speaks lines of JSON.
//
//	own, err := control.Acquire(folder, session.Owner{PID: os.Getpid(), ...}) // the process with the engine
//	srv, err := own.Serve(job)                                             // job answers, see Job
//	defer own.Close()
//
//	c, err := control.Dial(ctx, folder)       // any other process
//	st, err := c.Status(ctx)
//	err = c.Do(ctx, control.Request{Do: control.Pause})
//	err = c.Follow(ctx, time.Second/4, func(st control.Status) error { ... })
//
// # Who owns it
//
// The owner holds a lock of the operating system on a file beside the socket.
// The lock ends with the process however it ended, so nobody has to guess from a
// leftover socket whether someone is still there: whoever gets the lock may
// remove the socket and make a new one, nobody else touches it.
//
// # The protocol
//
// Every message is one JSON object on one line of at most MaxLine bytes. The
// server speaks first and says its version (Hello). The client sends requests;
// each is answered by a line with its id, in order. After Subscribe the server
// also sends lines with the event "status" whenever something has changed, and
// "bye" before it closes. wire.go lists all fields. Unknown fields are ignored, so
// that they can be added; a change of meaning is another version.
//
// # What it promises
//
// A client can never hold the job up. Requests are handed over and answered at
// once. Figures are sampled when the client is ready for them: a slow one gets
// fewer, never older ones. Tokens are not sent at all: they are in the journal,
// and Status says how many; a client reads them there from the place it has
// reached, so that none is lost however slow it is.
//
// # What it never does
//
// It knows no engine and no screen: live figures for screens travel as a JSON
// value it does not look into (Status.Sample). It listens on no network. It
// starts no process.
//
// # Caveats
//
// The folder is made for the owner alone (0700) and the socket is 0600: who may
// connect may do everything. The path of a socket is short by nature (about 100
// bytes); a longer one is a PathError.
package control
