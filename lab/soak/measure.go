package soak

import (
	"strings"
)

// Measure is a value that must not grow from one cycle to the next.
type Measure struct {
	Name, Unit string
	// Noise is the allowed increase of the median from one cycle to the next, and Share the allowed increase as
	// a part of the previous value: the larger one applies.
	Noise, Share float64
	// Why is the source of the noise.
	Why string
}

// Names of measures.
const (
	Heap          = "heap"
	Goroutines    = "goroutines"
	OpenFiles     = "open files"
	LogBytes      = "operator's log"
	LogLines      = "lines of it"
	EventsCreated = "Events made"
	Requests      = "certificate requests"
	Objects       = "API objects"
	ObjectBytes   = "size of all API objects"
	Series        = "metric series"
	HostFiles     = "files on hosts"
	HostBytes     = "size of them"
	HostEvents    = "Windows events written"
)

// objectsOf is the prefix of the names of measures of single kinds of objects.
const objectsOf = Objects + " of kind "

// measures are all measures except measures of single kinds of objects, in display order.
var measures = []Measure{
	{Name: Heap, Unit: "MiB", Noise: 2, Share: 0.03,
		Why: "what programs of nodes leave that were stopped minutes ago"},
	{Name: Goroutines, Noise: 6, Why: "connections to the API server that are idle; watches of metadata that broke while an event came, whose goroutine controller-runtime never ends"},
	{Name: OpenFiles, Noise: 6, Why: "the same"},
	{Name: LogBytes, Unit: "KiB a day", Noise: 8, Share: 0.15,
		Why: "what is tried again until the API server or a host is there depends on how busy the machine is"},
	{Name: LogLines, Unit: "a day", Noise: 20, Share: 0.15, Why: "the same"},
	{Name: EventsCreated, Unit: "a day", Noise: 10, Share: 0.2, Why: "the same"},
	{Name: Requests, Unit: "a day", Noise: 8, Share: 0.25,
		Why: "kubelets renew by the real clock, and a day takes as long as the machine is busy"},
	{Name: Objects, Why: "nothing: the same is there at the end of each day"},
	{Name: ObjectBytes, Unit: "KiB", Noise: 4, Share: 0.002, Why: "times and messages are not always of the same length"},
	{Name: Series, Noise: 0, Share: 0.01, Why: "histograms and results of requests appear when they first happen"},
	{Name: HostFiles, Noise: 2, Why: "a log that is rotated has one more file for a time"},
	{Name: HostBytes, Unit: "MiB", Noise: 0.5, Share: 0.05, Why: "logs grow until they are rotated"},
	{Name: HostEvents, Unit: "a day", Noise: 5, Share: 0.2, Why: "repairs that take another way on a busy machine"},
}

// measureOf returns the measure with a name.
func measureOf(name string) Measure {
	for _, m := range measures {
		if m.Name == name {
			return m
		}
	}
	return Measure{Name: name, Why: "nothing: the same is there at the end of each day"}
}

// isKindMeasure reports whether a measure belongs to a single kind of objects.
func isKindMeasure(name string) bool { return strings.HasPrefix(name, objectsOf) }
