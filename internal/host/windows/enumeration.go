package windows

// Statuses of IEnumVARIANT.Next, which is called for one item at a time.
const (
	statusOK    = 0 // S_OK: as many items as requested
	statusFalse = 1 // S_FALSE: fewer items than requested, and none is left
	// statusFailure is the severity bit of an HRESULT.
	statusFailure = 1 << 31
)

// nextOutcome is the meaning of a result of IEnumVARIANT.Next.
type nextOutcome int

const (
	itemFetched   nextOutcome = iota
	lastFetched               // and no item follows
	listEnded                 // without an item
	listTruncated             // the rest could not be read
)

// classifyNext returns the outcome of a call of IEnumVARIANT.Next. Only S_FALSE ends a list. A failure, and a success
// without an item such as WBEM_S_TIMEDOUT, leaves items unread.
func classifyNext(status uint32, fetched uint) nextOutcome {
	switch {
	case status&statusFailure != 0:
		return listTruncated
	case status == statusFalse && fetched > 0:
		return lastFetched
	case status == statusFalse:
		return listEnded
	case fetched > 0:
		return itemFetched
	}
	return listTruncated
}
