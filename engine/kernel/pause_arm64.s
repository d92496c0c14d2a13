//go:build !noasm

#include "textflag.h"

// func pauseTurn()
TEXT ·pauseTurn(SB), NOSPLIT, $0-0
	ISB $15
	ISB $15
	ISB $15
	ISB $15
	RET
