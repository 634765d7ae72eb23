package settings

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// quietTime is how long nothing may happen for a cluster to be silent.
const quietTime = 1200 * time.Millisecond

// silent waits until there is a time in which the operator asks the API server for nothing but its leases, and no host is contacted.
func (l lab) silent() {
	l.Helper()
	deadline := time.Now().Add(limit)
	for {
		before, hosts := l.auditLength(), l.connections()
		time.Sleep(quietTime) // That nothing happens shows only in time.
		requests := l.requests(before)
		if l.connections() > hosts {
			requests = append(requests, "connections to hosts")
		}
		if len(requests) == 0 {
			return
		}
		if time.Now().After(deadline) {
			l.Errorf("with nothing to do, the operator did within %s:\n%s", quietTime, strings.Join(requests, "\n"))
			return
		}
	}
}

func (l lab) auditLength() int64 {
	l.Helper()
	info, err := os.Stat(l.Cluster().AuditLog)
	l.must(err)
	return info.Size()
}

// requests are those of the operator after a place in the audit log, without leases, and without watches, which go on.
func (l lab) requests(from int64) (requests []string) {
	l.Helper()
	log, err := os.ReadFile(l.Cluster().AuditLog)
	l.must(err)
	lines := bufio.NewScanner(bytes.NewReader(log[from:]))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry struct {
			Verb, RequestURI string
			User             struct{ Username string }
			Ref              struct{ Resource string } `json:"objectRef"`
		}
		if json.Unmarshal(lines.Bytes(), &entry) != nil {
			continue // the last line may be half written
		}
		if entry.User.Username != "system:serviceaccount:"+l.Namespace()+":windows-machine-config-operator" ||
			entry.Ref.Resource == "leases" || entry.Verb == "watch" {
			continue
		}
		requests = append(requests, entry.Verb+" "+entry.RequestURI)
	}
	l.must(lines.Err())
	return requests
}

// connections is how many SSH connections hosts have had.
func (l lab) connections() (n int) {
	for _, h := range append(l.Hosts(), l.MachineHosts()...) {
		n += h.Machine().Journal().Count(fake.KindConnection)
	}
	return n
}
