package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

const operatorUser = "system:serviceaccount:ns:operator"

func formatRequest(user, verb, group, resource, subresource string) string {
	return fmt.Sprintf(`{"kind":"Event","verb":%q,"user":{"username":%q},"objectRef":{"apiGroup":%q,"resource":%q,"subresource":%q}}`+"\n",
		verb, user, group, resource, subresource)
}

func TestRequests(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	add := func(text string) {
		file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	a := CountRequests(Open(log), ServiceAccount("ns", "operator"))
	expect := func(reads, writes int) {
		t.Helper()
		if err := a.Update(); err != nil || a.Reads != reads || a.Writes != writes {
			t.Errorf("%d reads, %d writes, error %v; want %d and %d", a.Reads, a.Writes, err, reads, writes)
		}
	}
	if err := a.Update(); err == nil {
		t.Error("a log that is not there is no error")
	}
	add(formatRequest(operatorUser, "get", "", "nodes", "") + formatRequest(operatorUser, "patch", "", "nodes", "status"))
	expect(1, 1)
	t.Run("requests of others are not counted, and neither are leases and watches", func(t *testing.T) {
		add(formatRequest("system:admin", "patch", "", "nodes", "") + formatRequest(operatorUser+"-2", "create", "", "events", "") +
			formatRequest(operatorUser, "update", "coordination.k8s.io", "leases", "") +
			formatRequest(operatorUser, "watch", "", "nodes", ""))
		expect(1, 1)
	})
	t.Run("a line that is half written is counted when it is whole", func(t *testing.T) {
		line := formatRequest(operatorUser, "create", "events.k8s.io", "events", "")
		add(line[:40])
		expect(1, 1)
		add(line[40:])
		expect(1, 2)
	})
	t.Run("every request is counted by what it is, the most frequent first", func(t *testing.T) {
		for _, verb := range []string{"update", "delete", "deletecollection"} {
			add(formatRequest(operatorUser, verb, "", "nodes", ""))
		}
		expect(1, 5)
		add(formatRequest(operatorUser, "delete", "", "nodes", "") + `{"verb":"get","user":{"username":"` + operatorUser +
			`"},"requestURI":"/version?timeout=1s"}` + "\n")
		expect(2, 6)
		want := "2 reads, 6 writes\n   2 delete nodes\n   1 create events\n   1 deletecollection nodes\n" +
			"   1 get /version\n   1 get nodes\n   1 patch nodes/status\n   1 update nodes"
		if got := a.String(); got != want {
			t.Errorf("got %s", got)
		}
	})
}
