package robustness

import (
	"math/rand/v2"
	"time"

	"github.com/windows-machine-config/wmco/lab/winhost"
)

// kind has the relative frequency of a kind of actions and the function that creates an action. The function returns
// false if no such action is possible now.
type kind struct {
	weight int
	choose func(g *generator) (Action, bool)
}

// kinds are all kinds of actions.
var kinds = map[Kind]kind{
	ListHost:   {6, func(g *generator) (Action, bool) { return g.actionOnHost(g.model.unlistedHosts(g.shape)) }},
	UnlistHost: {5, func(g *generator) (Action, bool) { return g.actionOnHost(g.spareHosts()) }},
	WrongEntry: {2, func(g *generator) (Action, bool) { return g.withDuration(g.actionOnHost(g.model.listedHosts(g.shape))) }},
	InvalidEntry: {1, func(g *generator) (Action, bool) {
		return g.withDuration(Action{Text: pickRandom(g, "10.0.0", "-x.example.com", "10.9.0.999", "1.2.3.4.5", "a..b")}, true)
	}},
	PauseHost:      {2, func(g *generator) (Action, bool) { return g.withDuration(g.actionOnHost(g.model.listedHosts(g.shape))) }},
	PausePolicy:    {1, func(g *generator) (Action, bool) { return g.withDuration(Action{}, true) }},
	MaxUnavailable: {2, func(g *generator) (Action, bool) { return Action{Number: 1 + g.random.IntN(2)}, true }},
	Reboot:         {3, func(g *generator) (Action, bool) { return g.actionOnHost(g.model.listedHosts(g.shape)) }},
	Retry:          {1, func(g *generator) (Action, bool) { return g.actionOnHost(g.model.listedHosts(g.shape)) }},
	DeleteInstance: {2, func(g *generator) (Action, bool) { return g.actionOnHost(g.model.listedHosts(g.shape)) }},
	DeleteNode:     {2, func(g *generator) (Action, bool) { return g.actionOnHost(g.model.listedHosts(g.shape)) }},
	Cordon:         {1, func(g *generator) (Action, bool) { return g.actionOnHost(g.model.listedHosts(g.shape)) }},
	Uncordon:       {1, func(g *generator) (Action, bool) { return g.actionOnHost(g.model.listedHosts(g.shape)) }},
	Setting:        {3, func(g *generator) (Action, bool) { return Action{Number: 100 + g.random.IntN(20)}, true }},
	RotateKey:      {1, func(g *generator) (Action, bool) { return Action{}, !g.model.Rotated }},
	Release: {3, func(g *generator) (Action, bool) {
		return Action{Number: g.model.Release + 1}, g.model.Release+1 < g.shape.Releases
	}},
	Scale:    {5, func(g *generator) (Action, bool) { return Action{Number: g.random.IntN(3)}, g.shape.Machines > 0 }},
	KeepPods: {4, func(g *generator) (Action, bool) { return g.withDuration(Action{}, true) }},
	Await: {4, func(g *generator) (Action, bool) {
		return Action{For: g.randomDuration(5*time.Second, 40*time.Second)}, true
	}},

	KillOperator: {8, func(g *generator) (Action, bool) { return g.withDuration(Action{}, true) }},
	StopOperator: {3, func(g *generator) (Action, bool) { return g.withDuration(Action{}, true) }},
	StaleStart: {6, func(g *generator) (Action, bool) { // long enough for a start and the first actions
		return Action{For: g.randomDuration(3*time.Second, 12*time.Second), Resource: g.randomResource(), Number: 1 + g.random.IntN(8)}, true
	}},
	SecondOperator: {3, func(g *generator) (Action, bool) { return g.withDuration(Action{Number: g.random.IntN(2)}, true) }},
	RestartAPI:     {1, func(*generator) (Action, bool) { return Action{}, true }},
	CutAPI:         {2, func(g *generator) (Action, bool) { return g.withDuration(Action{}, true) }},
	DelayWatches:   {3, func(g *generator) (Action, bool) { return g.apiAction(200 + g.random.IntN(3000)) }},
	HoldWatches:    {4, func(g *generator) (Action, bool) { return g.apiAction(0) }},
	BreakWatches:   {1, func(g *generator) (Action, bool) { return Action{Resource: g.randomResource()}, true }},
	FailRequests:   {3, func(g *generator) (Action, bool) { return g.apiAction(1 + g.random.IntN(3)) }},
	Conflicts:      {3, func(g *generator) (Action, bool) { return g.apiAction(1 + g.random.IntN(3)) }},
	LoseAnswers:    {4, func(g *generator) (Action, bool) { return g.apiAction(1 + g.random.IntN(3)) }},
	HostFault:      {10, (*generator).hostFault},
	PowerOff:       {3, func(g *generator) (Action, bool) { return g.withDuration(g.actionOnHost(g.allHosts())) }},
	CrashService: {2, func(g *generator) (Action, bool) {
		a, ok := g.actionOnHost(append(g.model.listedHosts(g.shape), g.machineHosts()...))
		a.Text = pickRandom(g, "kubelet", "containerd", "kube-proxy", "hybrid-overlay-node", "windows_exporter", "windows-instance-config-daemon")
		return a, ok
	}},
	WrongClock: {1, func(g *generator) (Action, bool) {
		a, ok := g.withDuration(g.actionOnHost(g.allHosts()))
		a.Number = pickRandom(g, -7200, -600, 600, 7200)
		return a, ok
	}},
	MoveHost:  {1, func(g *generator) (Action, bool) { return g.actionOnHost(g.shape.Named) }},
	Reinstall: {1, func(g *generator) (Action, bool) { return g.actionOnHost(g.shape.Hosts) }},
	ForgeRequest: {2, func(g *generator) (Action, bool) {
		a, ok := g.actionOnHost(g.model.listedHosts(g.shape))
		a.Text = pickRandom(g, append([]string{"printer.example.com", "master-0", "kubernetes.default.svc",
			"api-int.lab.example.com", "10.9.0.250", "spiffe://lab.example.com/printer", nodeUser + "master-0"}, g.shape.Hosts...)...)
		return a, ok && a.Text != a.Host
	}},
}

// order lists all kinds in a fixed order, which a map lacks.
var order = []Kind{ListHost, UnlistHost, WrongEntry, InvalidEntry, PauseHost, PausePolicy, MaxUnavailable, Reboot, Retry,
	DeleteInstance, DeleteNode, Cordon, Uncordon, Setting, RotateKey, Release, Scale, KeepPods, Await, KillOperator, StopOperator, StaleStart, SecondOperator, RestartAPI,
	CutAPI, DelayWatches, HoldWatches, BreakWatches, FailRequests, Conflicts, LoseAnswers, HostFault, PowerOff,
	CrashService, WrongClock, MoveHost, Reinstall, ForgeRequest}

// resources are the resources that the operator reads and writes most; "" means all resources.
var resources = []string{"", "nodes", "windowsinstances", "windowsinstances", "windowsdisruptionpolicies",
	"certificatesigningrequests", "configmaps", "secrets", "events", "leases"}

// together are the kinds that follow a kind with a probability of one half, in any order. By chance they would seldom
// coincide.
var together = map[Kind][]Kind{KeepPods: {Setting, Reboot}}

// generator generates the actions of one seed.
type generator struct {
	random *rand.Rand
	shape  Shape
	model  *Model
	next   []Kind // already chosen
}

// Generate returns the script of a seed. Each action makes sense after the previous ones.
func Generate(seed uint64, shape Shape) Script {
	g := &generator{random: rand.New(rand.NewPCG(seed, 0)), shape: shape, model: NewModel(shape)} //nolint:gosec // a seed is to give the same each time
	var actions []Action
	for len(actions) < shape.Actions {
		chosen := g.nextKind()
		a, ok := kinds[chosen].choose(g)
		if !ok {
			continue
		}
		a.Kind, a.Pause = chosen, g.randomDuration(50*time.Millisecond, 1500*time.Millisecond)
		g.model.Apply(a)
		actions = append(actions, a)
		if follow := together[chosen]; len(follow) > 0 && g.random.IntN(2) == 0 {
			for _, i := range g.random.Perm(len(follow)) {
				g.next = append(g.next, follow[i])
			}
		}
	}
	return Script{Shape: shape, Actions: actions}
}

func (g *generator) nextKind() Kind {
	if len(g.next) > 0 {
		chosen := g.next[0]
		g.next = g.next[1:]
		return chosen
	}
	total := 0
	for _, k := range order {
		total += kinds[k].weight
	}
	n := g.random.IntN(total)
	for _, k := range order {
		if n -= kinds[k].weight; n < 0 {
			return k
		}
	}
	return order[0]
}

func (g *generator) randomDuration(least, most time.Duration) time.Duration {
	return (least + time.Duration(g.random.Int64N(int64(most-least)))).Round(time.Millisecond)
}

func pickRandom[T any](g *generator, from ...T) T { return from[g.random.IntN(len(from))] }

// actionOnHost chooses a host.
func (g *generator) actionOnHost(hosts []string) (Action, bool) {
	if len(hosts) == 0 {
		return Action{}, false
	}
	return Action{Host: pickRandom(g, hosts...)}, true
}

// spareHosts returns the listed hosts if at least two are listed.
func (g *generator) spareHosts() []string {
	if hosts := g.model.listedHosts(g.shape); len(hosts) > 1 {
		return hosts
	}
	return nil
}

// machineHosts returns the host of a Machine, if there is one.
func (g *generator) machineHosts() []string {
	if g.model.Machines == 0 {
		return nil
	}
	return []string{youngestMachine}
}

// allHosts returns all hosts.
func (g *generator) allHosts() []string { return append(g.machineHosts(), g.shape.Hosts...) }

// withDuration sets a duration.
func (g *generator) withDuration(a Action, ok bool) (Action, bool) {
	a.For = g.randomDuration(200*time.Millisecond, 8*time.Second)
	return a, ok
}

func (g *generator) randomResource() string { return pickRandom(g, resources...) }

func (g *generator) apiAction(number int) (Action, bool) {
	return g.withDuration(Action{Resource: g.randomResource(), Number: number}, true)
}

// hostFault chooses a fault of a host, with parameters that the host recovers from after the fault.
func (g *generator) hostFault() (Action, bool) {
	a, ok := g.withDuration(g.actionOnHost(g.allHosts()))
	fault := pickRandom(g, winhost.AllFaults()...)
	a.Text, a.Number = string(fault), int(fault.Example().Bytes)
	if fault == winhost.CutAfterBytes {
		a.Number = g.random.IntN(2 << 20)
	}
	return a, ok
}
