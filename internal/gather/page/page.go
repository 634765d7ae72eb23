// Package page draws a fleet as one self-contained HTML page: no script, no image, no font, no network.
package page

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/internal/fleet"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// Input is the content of the page.
type Input struct {
	Now   time.Time
	Fleet fleet.Fleet
	// Nodes holds the Nodes of the cluster by name, as far as readable.
	Nodes map[string]corev1.Node
	// Hosts holds the hosts with a section in the page, in the order of the fleet.
	Hosts []Host
	// Gaps lists the unreadable data.
	Gaps []string
}

// Host holds the data of one host besides its WindowsInstance.
type Host struct {
	Instance fleet.Instance
	Events   []corev1.Event
	// Files lists the files in the archive by their paths relative to the page.
	Files []string
}

//go:embed page.html.tmpl
var source string

var page = template.Must(template.New("page").Parse(source))

// Write writes the page.
func Write(out io.Writer, in Input) error { return page.Execute(out, viewOf(in)) }

// view is the input of the template.
type view struct {
	When      string
	Total     int
	Dead      []problem
	Troubled  []problem
	Behind    []problem
	Policies  []string
	Rows      []row
	Hosts     []section
	Gaps      []string
	Namespace bool
}

// problem is a host with a problem, and a sentence that describes the problem.
type problem struct{ Name, Link, State, Why string }

type row struct {
	Name, Link, Namespace, Address, Source, Node, Windows, Version, State, Class, Since string
}

type section struct {
	row
	ID, Why, Next string
	Facts         []fact
	Failure       []fact
	Drawing       drawing
	Events        []event
	More          int
	Files         []string
	Open          bool
}

type fact struct{ Label, Value string }

type event struct{ When, Type, Reason, Message string }

func viewOf(in Input) view {
	v := view{When: formatTime(in.Now), Total: len(in.Fleet.Instances), Gaps: in.Gaps}
	links := map[string]string{}
	for n, h := range in.Hosts {
		links[instanceKey(h.Instance)] = fmt.Sprintf("host-%d", n+1)
	}
	namespaces := map[string]bool{}
	for _, i := range in.Fleet.Instances {
		namespaces[i.Namespace] = true
		r := rowOf(in, i)
		r.Link = links[instanceKey(i)]
		v.Rows = append(v.Rows, r)
		v.addProblem(in, i, r)
	}
	v.Namespace = len(namespaces) > 1
	for _, policy := range in.Fleet.Policies {
		if policy.Status.Summary != "" {
			v.Policies = append(v.Policies, policy.Status.Summary)
		}
	}
	for _, h := range in.Hosts {
		v.Hosts = append(v.Hosts, sectionOf(in, h, links[instanceKey(h.Instance)]))
	}
	return v
}

func instanceKey(i fleet.Instance) string { return i.Namespace + "/" + i.Name }

// addProblem adds an instance with a problem to one of the lists at the top.
func (v *view) addProblem(in Input, i fleet.Instance, r row) {
	health, why := in.healthOf(i)
	p := problem{Name: i.Name, Link: r.Link, State: r.State, Why: strings.TrimPrefix(sanitizeText(why), r.State+": ")}
	switch health {
	case fleet.Unreachable:
		v.Dead = append(v.Dead, p)
	case fleet.NotReady:
		v.Troubled = append(v.Troubled, p)
	case fleet.NotUpToDate:
		v.Behind = append(v.Behind, p)
	}
}

func (in Input) healthOf(i fleet.Instance) (health fleet.Health, why string) {
	if node, known := in.Nodes[fleet.NodeName(i)]; known {
		return fleet.HealthOf(i, &node)
	}
	return fleet.HealthOf(i, nil)
}

func rowOf(in Input, i fleet.Instance) row {
	r := row{Name: i.Name, Namespace: i.Namespace, Address: i.Spec.Address, Source: "ConfigMap", Node: fleet.NodeName(i),
		Version: i.Status.Version, State: fleet.State(i), Since: fleet.Age(in.Now, fleet.Since(i)), Class: "bad"}
	if i.Spec.Source.Machine != nil {
		r.Source = "Machine"
	}
	if i.Status.Host != nil {
		r.Windows = i.Status.Host.Build
	}
	switch health, _ := in.healthOf(i); {
	case health == fleet.Healthy:
		r.Class = "good"
	case health == fleet.NotUpToDate, i.Status.Summary == "", health == fleet.NotReady && i.Status.Step != nil:
		r.Class = "busy"
	}
	return r
}

func sectionOf(in Input, h Host, id string) section {
	i := h.Instance
	s := section{row: rowOf(in, i), ID: id, Facts: instanceFacts(in, i), Failure: failureFacts(i), Drawing: newDrawing(i, h.Events, in.Now),
		Files: h.Files}
	health, _ := in.healthOf(i)
	s.Open = health == fleet.Unreachable || health == fleet.NotReady
	s.Next = sanitizeText(i.Status.NextAction)
	if obstacle := fleet.BlockingCondition(i); obstacle != nil {
		s.Why = sanitizeText(obstacle.Message)
	}
	s.More = max(0, len(h.Events)-maxEvents)
	for n := len(h.Events) - 1; n >= s.More; n-- { // the latest first
		s.Events = append(s.Events, eventOf(h.Events[n]))
	}
	return s
}

func instanceFacts(in Input, i fleet.Instance) []fact {
	list := []fact{{"Source", "ConfigMap windows-instances, key " + i.Spec.Source.ConfigMapKey},
		{"Address", i.Spec.Address}, {"User", i.Spec.Username}}
	if machine := i.Spec.Source.Machine; machine != nil {
		list[0].Value = "Machine " + machine.Namespace + "/" + machine.Name
	}
	if host := i.Status.Host; host != nil {
		list = append(list, fact{"Host", host.Name}, fact{"Windows", strings.TrimSpace(host.Product + ", build " + host.Build)})
	}
	list = append(list, fact{"Node", nodeState(in, i)}, fact{"Version", i.Status.Version})
	if key := i.Status.HostKey; key != nil {
		list = append(list, fact{"Host key", key.Fingerprint})
	}
	if step := i.Status.Step; step != nil {
		list = append(list, fact{"Step", fmt.Sprintf("%s, %d of %d, for %s %s", step.Name, step.Index, step.Total,
			fleet.Age(in.Now, step.StartedAt.Time), step.Detail)})
	}
	if entry := in.Fleet.Disruption(i); entry != nil {
		list = append(list, fact{"Disruption", fmt.Sprintf("%s, for %s", entry.Cause, fleet.Age(in.Now, entry.Since.Time))})
	}
	if i.Spec.Paused {
		list = append(list, fact{"Paused", "The operator does not change or monitor the host."})
	}
	return nonEmptyFacts(list)
}

// nodeState returns the name of an instance's Node, and its state as reported by the kubelet.
func nodeState(in Input, i fleet.Instance) string {
	name := fleet.NodeName(i)
	node, there := in.Nodes[name]
	if !there {
		return name
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			name += fmt.Sprintf(", Ready=%s for %s", c.Status, fleet.Age(in.Now, c.LastTransitionTime.Time))
		}
	}
	if node.Spec.Unschedulable {
		name += ", unschedulable"
	}
	return name
}

func failureFacts(i fleet.Instance) []fact {
	failed := i.Status.FailedChange
	if failed == nil {
		return nil
	}
	list := []fact{{"Change", fmt.Sprintf("%s, at %s, %d attempts", failed.Cause, formatTime(failed.Time.Time), failed.Attempts)},
		{"Reason", failed.Reason}, {"Message", failed.Message}, {"After", fleet.DescribeAfterFailure(*failed)}}
	if failed.RetryAfter != nil {
		list = append(list, fact{"Next attempt", fmt.Sprintf("at %s, or at once with: kubectl windows retry %s",
			formatTime(failed.RetryAfter.Time), i.Name)})
	}
	return nonEmptyFacts(list)
}

// nonEmptyFacts removes facts without a value, and converts each value to one line.
func nonEmptyFacts(list []fact) []fact {
	var kept []fact
	for _, f := range list {
		if f.Value = sanitizeText(f.Value); f.Value != "" {
			kept = append(kept, f)
		}
	}
	return kept
}

// maxEvents is the maximum number of events of a host in the page: the latest events. The archive contains all
// events.
const maxEvents = 50

func eventOf(e corev1.Event) event {
	times := cmp.Or(e.Count, 1)
	if e.Series != nil {
		times = e.Series.Count
	}
	shown := event{When: formatTime(fleet.LastSeen(e)), Type: e.Type, Reason: sanitizeText(e.Reason), Message: sanitizeText(e.Message)}
	if times > 1 {
		shown.Reason += fmt.Sprintf(" (%d times)", times)
	}
	return shown
}

// maxTextLength is the maximum length of a text that may quote a host, in bytes.
const maxTextLength = 2000

func sanitizeText(foreign string) string { return sanitize.Plain(foreign, maxTextLength) }

func formatTime(t time.Time) string { return t.UTC().Format(time.DateTime) }
