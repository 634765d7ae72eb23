package hostjobs

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/plan"
)

// maxHeldBytes is the maximum memory for the responses of one host, in bytes. The memory limit of the operator's
// Deployment has room for hundreds of hostile hosts.
const maxHeldBytes = 256 << 10

// A host under the control of an attacker sends lines of the maximum length. Hardly any of the content stays in
// memory.
func TestBoundFacts_HostileFactsHoldLittleMemory(t *testing.T) {
	repeated := func(count int, form string) string {
		parts := make([]string, count)
		for i := range parts {
			parts[i] = fmt.Sprintf(form, i)
		}
		return strings.Join(parts, ",")
	}
	long := strings.Repeat("x", 2<<20)
	for name, facts := range map[string]string{
		"files":      `{"files":{` + repeated(6000, `"%d":{}`) + `}}`,
		"services":   `{"services":{` + repeated(6000, `"%d":{}`) + `}}`,
		"processes":  `{"processes":[` + repeated(20_000, `{"pid":%d}`) + `]}`,
		"endpoints":  `{"endpoints":[` + strings.Repeat("{},", 20_000) + `{}]}`,
		"payload":    `{"payload":{` + repeated(10_000, `"%064d":"C:\\k\\releases\\file"`) + `}}`,
		"identities": `{"identities":{` + repeated(6000, `"%d":{"request":"x"}`) + `}}`,
		"addresses":  `{"system":{"addresses":[` + strings.Repeat(`"10.0.0.1",`, 20_000) + `"10.0.0.1"]}}`,
		"resolved":   `{"apiServer":{"resolved":[` + strings.Repeat(`"10.0.0.1",`, 20_000) + `"10.0.0.1"]}}`,
		"long texts": `{"system":{"hostName":"` + long + `"},"podSubnet":"` + long + `","identity":{"request":"` + long + `"}}`,
		"spaces":     `{"system":{"hostName":"a` + strings.Repeat(" ", 2<<20) + `"}}`,
		"the ledger": `{"ledger":{"files":{` + repeated(6000, `"%d":{}`) + `}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			held := func() uint64 {
				runtime.GC()
				runtime.GC()
				var stats runtime.MemStats
				runtime.ReadMemStats(&stats)
				return stats.HeapAlloc
			}
			text := []byte(facts)
			before := held()
			told := &plan.Facts{}
			if err := json.Unmarshal(text, told); err != nil {
				t.Fatal(err)
			}
			total := held() - before
			boundFacts(told)
			kept := held() - before
			t.Logf("%d KiB of text, %d KiB when it was read, %d KiB are kept", len(text)>>10, total>>10, int64(kept)>>10)
			if int64(kept) > maxHeldBytes {
				t.Errorf("%d KiB are kept", kept>>10)
			}
			runtime.KeepAlive(told)
			runtime.KeepAlive(text)
		})
	}
}
