module deltafin/engine/kernel/asm

go 1.26.0
