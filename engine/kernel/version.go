package kernel

// Arithmetic names the numeric contract of the package comment: the orders of sums
// and the polynomials. Two builds with the same name give the same bits on every
// machine. It changes whenever a result may change, and saved states of another
// name are not continued but computed again.
const Arithmetic = "lanes16-fma-1"
