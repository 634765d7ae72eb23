package remote

import (
	"bufio"
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/collect"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
)

func TestReadLine_LongestAgentLineRead(t *testing.T) {
	found := &agentapi.Collected{Unknown: map[string]string{}}
	for i := range 2000 {
		found.Services = append(found.Services, agentapi.ServiceState{Name: fmt.Sprint("service-", i), CommandLine: "kubelet.exe --v=1,2,3:4"})
		found.Events = append(found.Events, agentapi.Event{Log: "System", LoggedEvent: host.LoggedEvent{Time: time.Unix(int64(i), 0),
			Event: host.Event{Message: "a,b,c,d,e: f"}}})
	}
	result := &agentapi.Result{Collected: found}
	refused, err := agentapi.Line{Type: agentapi.TypeResult, Result: result}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := decodeLine(refused); err == nil {
		t.Fatal("it is read also when nothing is left out")
	}
	collect.Fit(result)
	encoded, err := agentapi.Line{Type: agentapi.TypeResult, Time: time.Unix(1<<30, 1), Result: result}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	text, err := readLine(bufio.NewReader(bytes.NewReader(append(encoded, '\n'))))
	if err != nil {
		t.Fatal(err)
	}
	line, ok, err := decodeLine(text)
	if err != nil || !ok || len(line.Result.Collected.Services) == 0 {
		t.Errorf("it is not read: %t, %v", ok, err)
	}
}
