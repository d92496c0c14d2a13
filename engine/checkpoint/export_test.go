package checkpoint

// ParseHeader and the limits are tested without a whole checkpoint around them.
var ParseHeader = parseHeader

// ParseIndex gives the number of names and of bytes that the table could take.
func ParseIndex(data []byte, cfg *Config) (names int, total int64, err error) {
	x, err := parseIndex(IndexFile, data, cfg)
	if err != nil {
		return 0, 0, err
	}
	return x.names, x.total, nil
}
