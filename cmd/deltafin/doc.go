// Command deltafin runs Kimi K3 on one computer.
//
// Every subcommand is one small file here. This package reads flags, joins the
// packages that do the work, and writes to the terminal; it holds no logic that
// another program would want. Answers go to standard output, everything else to
// standard error. Exit codes are listed in exit.go.
package main
