package session

// Numbers of <sys/fcntl.h>, which golang.org/x/sys does not list.
const (
	ofdSetLock = 90
	ofdGetLock = 92
)
