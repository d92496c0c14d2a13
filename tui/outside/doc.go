// Package outside is for programs of the user's that the screen hands something
// to: an editor for the text of the input, a command that is told of a finished
// answer.
//
//	args, err := outside.Words(`sh -c "notify-send done"`) // as a shell splits, without one
//
//	d, err := outside.NewDraft(os.Getenv("EDITOR"), text) // a temporary file, 0600
//	err = d.Command(ctx).Run()
//	text, changed, err := d.Text()
//	err = d.Remove()
//
// What the package never does: it starts no shell unless the user's words name
// one, and it deletes no file that holds something the caller has not read.
//
// Caveats: Words knows quotes and the backslash and nothing else of a shell: no
// variables, no patterns, no pipes. On Windows a backslash is a letter.
package outside
