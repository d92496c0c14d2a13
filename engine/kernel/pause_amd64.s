//go:build !noasm

#include "textflag.h"

// func pauseTurn()
TEXT ·pauseTurn(SB), NOSPLIT, $0-0
	PAUSE
	PAUSE
	PAUSE
	PAUSE
	RET
