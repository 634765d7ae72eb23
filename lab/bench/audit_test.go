package bench

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

const operatorUser = "system:serviceaccount:ns:operator"

func request(user, verb, group, resource, subresource string) string {
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
	a := newRequests(log, "ns", "operator")
	expect := func(reads, writes int) {
		t.Helper()
		if err := a.update(); err != nil || a.reads != reads || a.writes != writes {
			t.Errorf("%d reads, %d writes, error %v; want %d and %d", a.reads, a.writes, err, reads, writes)
		}
	}
	if err := a.update(); err == nil {
		t.Error("a log that is not there is no error")
	}
	add(request(operatorUser, "get", "", "nodes", "") + request(operatorUser, "patch", "", "nodes", "status"))
	expect(1, 1)
	t.Run("requests of others are not counted, and neither are leases", func(t *testing.T) {
		add(request("system:admin", "patch", "", "nodes", "") + request(operatorUser+"-2", "create", "", "events", "") +
			request(operatorUser, "update", "coordination.k8s.io", "leases", ""))
		expect(1, 1)
	})
	t.Run("a line that is half written is counted when it is whole", func(t *testing.T) {
		line := request(operatorUser, "create", "events.k8s.io", "events", "")
		add(line[:40])
		expect(1, 1)
		add(line[40:])
		expect(1, 2)
	})
	t.Run("every way to write is counted, by what was written", func(t *testing.T) {
		for _, verb := range []string{"update", "delete", "deletecollection"} {
			add(request(operatorUser, verb, "", "nodes", ""))
		}
		expect(1, 5)
		want := map[string]int{"patch nodes/status": 1, "create events": 1, "update nodes": 1, "delete nodes": 1,
			"deletecollection nodes": 1}
		if !maps.Equal(a.kinds, want) {
			t.Errorf("got %v", a.kinds)
		}
	})
}
