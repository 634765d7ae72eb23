package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// audit counts a user's requests in the API server's audit log.
type audit struct {
	path, user string
	offset     int64
	rest       []byte // the beginning of a line that is not complete yet
	reads      int
	writes     int
	kinds      map[string]int
}

func newAudit(path, namespace, serviceAccount string) *audit {
	return &audit{path: path, user: "system:serviceaccount:" + namespace + ":" + serviceAccount, kinds: map[string]int{}}
}

// update reads what was logged since the last time.
func (a *audit) update() error {
	file, err := os.Open(a.path)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	if info.Size() < a.offset {
		return fmt.Errorf("the audit log %s was rotated: its counts would be too low; measure fewer hosts", a.path)
	}
	data, err := io.ReadAll(io.NewSectionReader(file, a.offset, info.Size()-a.offset))
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	a.offset += int64(len(data))
	return a.take(data)
}

// take counts the complete lines and keeps the rest for the next time.
func (a *audit) take(data []byte) error {
	a.rest = append(a.rest, data...)
	for {
		line, rest, complete := bytes.Cut(a.rest, []byte("\n"))
		if !complete {
			return nil
		}
		a.rest = rest
		if err := a.line(line); err != nil {
			return err
		}
	}
}

type auditEvent struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		APIGroup    string `json:"apiGroup"`
	} `json:"objectRef"`
}

// kind is what was done to what.
func (e auditEvent) kind() string {
	kind := e.Verb + " " + e.Object.Resource
	if e.Object.Subresource != "" {
		kind += "/" + e.Object.Subresource
	}
	return kind
}

func (a *audit) line(line []byte) error {
	var event auditEvent
	if err := json.Unmarshal(line, &event); err != nil {
		return fmt.Errorf("read the audit log: a line is no JSON: %w", err)
	}
	if event.User.Username != a.user {
		return nil
	}
	switch event.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		if event.Object.Resource == "leases" && event.Object.APIGroup == "coordination.k8s.io" {
			return nil // leader election is what an idle operator writes
		}
		a.writes++
		a.kinds[event.kind()]++
	default:
		a.reads++
	}
	return nil
}
