// Package benchio measures package ssdio against what the drives below it can
// do in the same run: on real folders against plain parallel reads, on emulated
// drives against the sum of their limits, with a drive that slows down half
// way, and in processor time. It makes its own data in folders that the caller
// names and removes it afterwards.
//
// The rows are those of "deltafin bench drives"; their names are stable.
//
// Nothing here is meaningful on a machine that is busy with something else, and
// the figures of a drive drift by several per cent within minutes: that is why
// the limit is always measured in turns with the value.
package benchio
