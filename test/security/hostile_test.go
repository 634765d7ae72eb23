package security

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// maxStatusBytes is the maximum size of an instance on the API server, in bytes, independent of the host's output.
const maxStatusBytes = 64 << 10

// hostileOutputs contains malicious replacements for each line of the agent's output on a compromised host, with the reason
// that the operator reports.
var hostileOutputs = map[string]struct {
	words  func(line []byte) []byte
	reason string
}{
	"garbage": {replaceWith("\x1b[2J\x00\xff\xfe]]>{{{\r\n"), "AgentStartFailed"},
	"endless": {func([]byte) []byte { return bytes.Repeat([]byte("A"), 9<<20) }, "AgentExited"},
	"deep": {replaceWith(`{"wicd":"v1","type":"result","result":` + strings.Repeat(`{"facts":`, 1<<14) + "\n"),
		"AgentStartFailed"},
	"huge": {func([]byte) []byte { return encodeLine(manyFacts()) }, "AgentExited"},
	"loud": {func([]byte) []byte { return loudFailure() }, "AgentError"},
	"path-climber": {modifyFacts(func(f *plan.Facts) {
		f.System.HostName = `..\..\Windows\System32`
	}), v1alpha1.ReasonHostNameInvalid},
	"long-name": {modifyFacts(func(f *plan.Facts) {
		f.System.HostName = strings.Repeat("a", 1<<20)
	}), v1alpha1.ReasonHostNameInvalid},
	"no-facts":      {replaceWith(`{"wicd":"v1","type":"result","result":{}}` + "\n"), v1alpha1.ReasonStepFailed},
	"silent":        {replaceWith(""), "AgentStartFailed"},
	"wrong-version": {replaceWith(`{"wicd":"v2","type":"result"}` + "\n"), "AgentStartFailed"},
}

func replaceWith(words string) func([]byte) []byte {
	return func([]byte) []byte { return []byte(words) }
}

// manyFacts returns more facts than any host has.
func manyFacts() agentapi.Line {
	files := map[string]plan.FileFact{}
	for i := range 100_000 {
		files[fmt.Sprintf(`C:\%d\..\..\evil`, i)] = plan.FileFact{}
	}
	return agentapi.Line{Type: agentapi.TypeResult, Result: &agentapi.Result{Facts: &plan.Facts{Files: files}}}
}

// loudFailure returns a message that would manipulate a terminal and fill the API server.
func loudFailure() []byte {
	text := "\x1b]0;owned\x07\u202e" + strings.Repeat("<script>", 30_000)
	return encodeLine(agentapi.Line{Type: agentapi.TypeFailure, Failure: &agentapi.Failure{Reason: agentapi.Reason(text),
		Step: text, Message: text}})
}

func encodeLine(line agentapi.Line) []byte {
	encoded, err := line.Encode()
	if err != nil {
		panic(err) // the tests' own value
	}
	return append(encoded, '\n')
}

// modifyFacts returns a function that modifies the facts in the agent's output and keeps its format.
func modifyFacts(lie func(*plan.Facts)) func(line []byte) []byte {
	return func(text []byte) []byte {
		line, ok := agentapi.Decode(text)
		if !ok || line.Result == nil || line.Result.Facts == nil {
			return append(text, '\n')
		}
		lie(line.Result.Facts)
		return encodeLine(line)
	}
}

//
func TestHostileHosts_InvalidOutputContained(t *testing.T) {
	hosts := []testenv.HostOptions{{Name: "honest"}}
	for name := range hostileOutputs {
		hosts = append(hosts, testenv.HostOptions{Name: name})
	}
	l := newInstalledLab(t, testenv.Options{Hosts: hosts})
	for name, host := range hostileOutputs {
		l.TamperOutput(l.Host(name), host.words)
	}
	l.startOperator()
	l.list()
	l.waitUntilReady("honest")
	for name, host := range hostileOutputs {
		l.waitForCondition(name, host.reason)
		l.checkBrief(name)
	}
	l.checkOnlySignedFor("honest")
}

// checkBrief checks that the report about a host is short and readable.
func (l lab) checkBrief(name string) {
	l.Helper()
	instance := l.getInstance(name)
	encoded, err := json.Marshal(instance)
	l.requireNoError(err)
	if len(encoded) > maxStatusBytes {
		l.Errorf("the instance of host %s has %d bytes", name, len(encoded))
	}
	texts := []string{instance.Status.Summary, instance.Status.NextAction}
	for _, condition := range instance.Status.Conditions {
		texts = append(texts, condition.Reason, condition.Message)
	}
	if host := instance.Status.Host; host != nil {
		texts = append(texts, host.Name, host.Product, host.Build)
	}
	for _, text := range texts {
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }) {
			l.Errorf("of host %s it says %.200q", name, text)
		}
	}
}
