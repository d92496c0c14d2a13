package engine

import (
	"fmt"

	"deltafin/engine/expert"
	"deltafin/engine/kernel"
	"deltafin/engine/memory"
	"deltafin/engine/trunk"
)

// Options say how a model is opened. The zero value opens the demonstration model
// with everything the machine has.
type Options struct {
	// Model is the folder of the checkpoint; "" is the demonstration model inside
	// the program.
	Model string
	// Threads is the number of workers of the arithmetic. 0 stands for one per
	// core the process may use. It changes the speed, never a result.
	Threads int
	// Kernel is the instruction level: generic, avx2, avx512 or neon. "" takes
	// DELTAFIN_KERNEL or, without it, the fastest the machine has. A level that it
	// lacks is an error. It changes the speed, never a result.
	Kernel string
	// PrefillRows is how many tokens of a prompt share one pass over the weights;
	// 0 stands for DefaultPrefillRows. More read the weights fewer times and take
	// more memory. It never changes a result.
	PrefillRows int
	// ExpertCache is the memory for routed experts in bytes. Above 0 experts are
	// read from drives into a cache of this size; 0 maps all of them, which is
	// right for models that fit in memory. It never changes a result.
	ExpertCache int64
	// TrunkMemory is the memory for the weights that every token uses, in bytes: what
	// fits is read when the model is opened, the other layers for every pass. It needs
	// an ExpertCache. 0 leaves them mapped where there is no Memory either; with Memory
	// the plan decides. It never changes a result.
	TrunkMemory int64
	// Trunk is the form of the weights that every token uses: TrunkExact, which "" stands
	// for, or TrunkInt8 of a model that was converted. The latter takes about half the
	// memory and half the reads; it changes results.
	Trunk string
	// Loading is called while the trunk is read, on the goroutine of Open. It may be nil.
	Loading func(trunk.Progress)
	// Routes, if not nil, records which experts the router chooses.
	Routes *expert.Recorder
	// NoLookahead reads no expert before the router has asked for it. It never
	// changes a result.
	NoLookahead bool
	// Draft has tokens proposed that stood in the conversation before, and verified
	// several in one pass, where that is measured to be faster. It costs at most two
	// percent where it is not, takes memory (k3.DraftBytes), and never changes a result.
	Draft bool
	// Drives are the folders that experts are read from, each as in
	// emulate.ParseSpec: a path, with limits and faults to emulate behind commas. A
	// folder holds packs that were placed there, or the model's own folder is in
	// it. None stands for the model's own folder. The demonstration model is on
	// every drive: it lies in the program, and its drives lend it their limits.
	Drives []string
	// DriveState is the folder with what is known of drives: their profiles, and
	// the checksums of the model's own files. With "" each drive's folder gets a
	// marker file, and checksums are only kept until Close.
	DriveState string

	// Memory is the budget of the whole process in bytes, SpareMemory what the
	// machine can spare. Open then plans what is kept where (Info.Memory), refuses
	// what cannot work with a *memory.Error, and keeps the cache within what other
	// programs leave. ExpertCache and PrefillRows are upper bounds then, and without
	// an ExpertCache experts get what remains; with SpareMemory a model that fits is
	// mapped. 0 plans nothing. It never changes a result.
	Memory int64
	// Planned is called by Open with the plan, before anything large is read. It may
	// be nil.
	Planned func(*memory.Plan)
	// Context is how many tokens of conversation the plan has room for. 0 stands for
	// DefaultContext. Longer conversations are not refused.
	Context int
	// HeatDir is the folder where it is kept which experts are used most, so that
	// the next run's cache knows it. "" keeps nothing.
	HeatDir string
	// Notify is called from any goroutine with what a person should know while the
	// model runs, and must not block. It may be nil.
	Notify func(Notice)

	machine machine
	int8    *trunk.Int8 // the converted trunk, once it was found
}

// DefaultPrefillRows is the number of prompt tokens per pass.
const DefaultPrefillRows = 512

// maxThreads keeps a mistyped number from starting a million goroutines.
const maxThreads = 1024

// withDefaults fills in what was left open and checks the rest.
func (o Options) withDefaults() (Options, error) {
	if o.Threads == 0 {
		o.Threads = cores()
	}
	if o.PrefillRows == 0 {
		o.PrefillRows = DefaultPrefillRows
	}
	if o.Threads < 1 || o.Threads > maxThreads {
		return o, &UsageError{Field: "threads", Reason: fmt.Sprintf("%d is not between 1 and %d", o.Threads, maxThreads)}
	}
	if o.PrefillRows < 1 || o.PrefillRows > 1<<20 {
		return o, &UsageError{Field: "prefill rows", Reason: fmt.Sprintf("%d is not between 1 and %d", o.PrefillRows, 1<<20)}
	}
	if o.Context == 0 {
		o.Context = DefaultContext
	}
	if o.Context < 1 || o.Memory < SpareMemory {
		return o, &UsageError{Field: "memory", Reason: fmt.Sprintf("a plan for %d tokens in %d bytes cannot be made", o.Context, o.Memory)}
	}
	if o.Trunk == "" {
		o.Trunk = TrunkExact
	}
	if o.Trunk != TrunkExact && o.Trunk != TrunkInt8 {
		return o, &UsageError{Field: "trunk", Reason: fmt.Sprintf("%q is neither %s nor %s", o.Trunk, TrunkExact, TrunkInt8)}
	}
	if o.TrunkMemory < 0 || o.TrunkMemory > 0 && o.ExpertCache == 0 && o.Memory == 0 {
		return o, &UsageError{Field: "trunk memory", Reason: fmt.Sprintf("%d bytes of trunk with %d bytes of experts: both are above 0, or both are 0", o.TrunkMemory, o.ExpertCache)}
	}
	if o.ExpertCache < 0 {
		return o, &UsageError{Field: "expert cache", Reason: fmt.Sprintf("%d bytes are less than none", o.ExpertCache)}
	}
	if len(o.Drives) > 0 && o.ExpertCache == 0 && o.Memory == 0 {
		return o, &UsageError{Field: "expert cache", Reason: "experts are to be read from drives, but no memory is given to hold them: name a size"}
	}
	return o, nil
}

// selectKernel is kernel.Select with the error of a wrong option.
func (o Options) selectKernel() (*kernel.Table, error) {
	t, err := kernel.Select(o.Kernel)
	if err != nil {
		return nil, &UsageError{Field: "kernel", Reason: err.Error()}
	}
	return t, nil
}
