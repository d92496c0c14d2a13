// Package deltafin is the root of the module. It holds no code: the program is
// cmd/deltafin, the model runs in engine, the drives are driven by ssdio. What
// lives here is rules_test.go, the house rules as a test: who may import whom,
// that every package says what it is for, how long a file may grow, and that
// nothing sleeps or prints behind its caller's back.
package deltafin
