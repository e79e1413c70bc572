package main

// The limits of --history-size in bytes.
const (
	leastHistory = 1 << 20
	mostHistory  = 4 << 30
)

// historySize returns --history-size in bytes.
func historySize(v *call) (int64, error) {
	size := v.HistorySize.Value
	n := bytesOf(size)
	if n < leastHistory || n > mostHistory {
		return 0, v.HistorySize.Invalid(size, "write a size from 1MiB to 4GiB, such as 256MiB")
	}
	return int64(n), nil
}
