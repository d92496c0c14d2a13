// Package place plans and writes which drive holds which bytes of which object
// of a model, checks and repairs that, and combines what the drives say into a
// layout for package ssdio. It owns the files that this takes: manifests, packs,
// journals. It knows objects by key, size and extents, and nothing of models.
//
// # Placing
//
//	job, err := place.Begin(model, drives, opt)   // locks the drives
//	defer job.Close()
//	found, err := job.Found()                     // something to go on with?
//	plan := found.Plan
//	if plan == nil {
//		plan, err = place.NewPlan(model, candidates, place.PlanOptions{})
//	}
//	report, err := job.Run(ctx, plan, false)
//
// A plan gives each drive a contiguous range of every object (an elastic
// stripe), in proportion to its speed, wider where there is room. Run reads the
// model's own files once, from front to back, and writes packs to the drives,
// each by a goroutine of its own. Model files that lie on one of the drives are
// holdings in place: nothing is written for them but their sums, which the same
// pass computes.
//
// # Reading
//
//	p, err := place.Open(model, drives, state)
//	set, err := ssdio.Open(p.Drives, p.Layout, nil)
//
// A drive is known by its identity, so it may be mounted anywhere.
//
// # Safety
//
// Whatever stands in a journal is on the device before it is written there, and
// a manifest is published, by renaming, after everything it names was read back
// from the device past the page cache. So an interruption at any point costs at
// most what was written since the last sync; Run goes on from there. A torn
// journal is cut after its last whole record, a torn pack after its last
// journalled stripe. The model's own files are opened for reading only.
//
// # Files
//
// All numbers are little-endian; every file begins with 8 bytes of magic and a
// version (u32, now 1), which are judged before anything else. Checksums are
// CRC32C. "text" is a u32 length and that many bytes of UTF-8.
//
// An entry (40 bytes) says that blocks [lo,hi) of an object lie in a file:
//
//	0  i32 layer     4  i32 expert (ssdio.Key)   8  u64 size of the object, bytes
//	16 u32 lo        20 u32 hi                   24 u32 index of the file
//	28 u32 zero      32 u64 offset of block lo in the file
//
// A plan:
//
//	u64 pack size, f64 rate (bytes/s), u32 number of drives, and for each drive
//	[16] identity, text name, f64 speed (bytes/s), f64 work (fraction),
//	u64 bytes held, u64 bytes written, u32 from, u32 to (1/2^30 of an object),
//	u32 flags (1: in place)
//
// deltafin-place.manifest, one in each drive's folder:
//
//	0  "dfinmani"    8  u32 version    12 u32 block size (262144)
//	16 [32] fingerprint of the model   48 [16] identity of the drive
//	64 plan
//	   u32 number of files, and for each: u64 size, u32 kind (1 pack, 0 a file
//	   of the model), text name relative to the drive's folder
//	   u32 number of entries, entries
//	   u32 number of blocks, u32 sum of every block of every entry in order,
//	   u64 words of one bit per block: the sum is known
//	   u32 checksum of everything before
//
// deltafin-PLAN-NNNNN.pack, the stripes of many objects; it can be checked alone:
//
//	0   "dfinpack"   8  u32 version    12 u32 block size
//	16  [32] fingerprint               48 [16] identity of the drive
//	64  [16] identity of the plan      80 u32 number of the pack
//	84  u32 number of entries          88 u64 where the stripes begin
//	96  u64 size of the file           104 u32 checksum of the table
//	108 u32 checksum of bytes 0 to 107; zeros up to 4096
//	4096 table: entries (file 0), u32 sum of every block; zeros to the stripes
//	     stripes, each beginning on a multiple of 4096
//
// deltafin-place.journal, there while a placement is not finished:
//
//	0  "dfinjour"    8  u32 version    12 u32 length of the header's body
//	16 [32] fingerprint, [16] drive, u32 digest of the entries and files, plan
//	   u32 checksum of everything before
//	records: u32 kind, u32 index, u32 length, u32 zero, payload, u32 checksum
//	   1: entry index is on the device; payload: its block sums
//	   2: pack index was read back
//	   3: entries from index on, and packs from the payload's u32 on, are to be
//	      written again
//
// A 1.4 TB model of 82,432 experts has a manifest of about 26 MB per full copy.
//
// # What it never does
//
// It never writes to the model's own files, never publishes what it has not read
// back, never removes anything unless JobOptions.Replace is set, and never takes
// a file of another model, another drive or a newer version for its own.
//
// # Caveats
//
// One folder holds one model. Where a file system refuses direct reads, reading
// back may be answered from memory; reports say so. On macOS pages that are
// still cached are used even for direct reads. Manifests of different drives are
// published one after the other: between two of them a crash leaves some drives
// finished and others resumable.
package place
