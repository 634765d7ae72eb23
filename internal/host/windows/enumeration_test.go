package windows

import "testing"

func TestClassifyNext_FailureIsNotEndOfList(t *testing.T) {
	for name, c := range map[string]struct {
		status  uint32
		fetched uint
		want    nextOutcome
	}{
		"an item":                             {statusOK, 1, itemFetched},
		"an item with another success":        {0x00040001, 1, itemFetched},
		"the last item":                       {statusFalse, 1, lastFetched},
		"the end":                             {statusFalse, 0, listEnded},
		"access denied":                       {0x80041003, 0, listTruncated},
		"Defender was stopped":                {0x800106ba, 0, listTruncated},
		"invalid class":                       {0x80041010, 0, listTruncated},
		"a failure that comes with an item":   {0x80041001, 1, listTruncated},
		"no item, but nothing says the end":   {statusOK, 0, listTruncated},
		"no item in time (WBEM_S_TIMEDOUT)":   {0x00040004, 0, listTruncated},
		"partial results (WBEM_S_PARTIAL...)": {0x00040010, 0, listTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			if got := classifyNext(c.status, c.fetched); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
