package hostjobs

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/plan"
)

func TestStepKind_KindsMatchPlanOperations(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../plan/step.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	operations := 0
	ast.Inspect(file, func(node ast.Node) bool {
		method, ok := node.(*ast.FuncDecl)
		if !ok || method.Name.Name != "targetName" || method.Recv == nil {
			return true
		}
		operations++
		if kind, ok := method.Recv.List[0].Type.(*ast.Ident); !ok || !stepKinds[kind.Name] {
			t.Errorf("steps of %v are not counted by their kind", method.Recv.List[0].Type)
		}
		return false
	})
	if operations+1 != len(stepKinds) {
		t.Errorf("%d operations, and %d kinds with checks", operations, len(stepKinds))
	}
	for name, want := range map[string]string{
		plan.Name(plan.StartService{Service: "kubelet"}): "StartService", plan.Name(plan.Reboot{}): "Reboot",
		"Check KubeletHealthy": "Check",
		"":                     "Other", "StartServices kubelet": "Other", "startservice kubelet": "Other",
	} {
		if got := stepKind(name); got != want {
			t.Errorf("%q counts as %s", name, got)
		}
	}
}

func TestBoundFacts_HonestFactsUnchanged(t *testing.T) {
	facts := &plan.Facts{Applied: strings.Repeat("a", 64),
		CloudName: &plan.CloudNameFacts{Name: "ip-10-0-128-7.ec2.internal"}}
	facts.System.HostName, facts.System.Addresses = "win", []string{"10.0.0.1", "192.168.0.1"}
	facts.System.BootID = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Format(time.RFC3339Nano)
	before, _ := json.Marshal(facts)
	boundFacts(facts)
	if after, _ := json.Marshal(facts); !bytes.Equal(before, after) {
		t.Errorf("%s has become %s", before, after)
	}
	boundFacts(nil)
}

func TestBoundResult_HostileChecksTruncated(t *testing.T) {
	result := &agentapi.Result{}
	for range 20_000 {
		result.Checks = append(result.Checks, agentapi.CheckResult{Name: strings.Repeat("n", 5000), Message: "it is\x1b[2J broken\n" + strings.Repeat("m", 5000)})
	}
	boundResult(result)
	if len(result.Checks) != maxChecks {
		t.Errorf("%d checks are kept", len(result.Checks))
	}
	for _, check := range result.Checks {
		if len(check.Name) > maxFactLength || len(check.Message) > maxDetailLength || strings.ContainsAny(check.Message, "\x1b\n") {
			t.Fatalf("kept are %d bytes of a name and the message %q", len(check.Name), check.Message)
		}
	}
	honest := &agentapi.Result{Checks: []agentapi.CheckResult{{Name: "KubeletHealthy", Message: "connection refused", Advisory: true}}}
	boundResult(honest)
	if want := (agentapi.CheckResult{Name: "KubeletHealthy", Message: "connection refused", Advisory: true}); honest.Checks[0] != want {
		t.Errorf("a check became %+v", honest.Checks[0])
	}
}
