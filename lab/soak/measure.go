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
	LogLines      = "lines of the log"
	EventsCreated = "Events created"
	Requests      = "certificate requests"
	Objects       = "API objects"
	ObjectBytes   = "size of all API objects"
	Series        = "metric series"
	HostFiles     = "files on hosts"
	HostBytes     = "size of these files"
	HostEvents    = "Windows events written"
)

// objectsOf is the prefix of the names of measures of single kinds of objects.
const objectsOf = Objects + " of kind "

// measures are all measures except measures of single kinds of objects, in display order.
var measures = []Measure{
	{Name: Heap, Unit: "MiB", Noise: 2, Share: 0.03,
		Why: "memory of programs that stopped minutes ago"},
	{Name: Goroutines, Noise: 6, Why: "idle connections to the API server; goroutines that controller-runtime does not end when a watch of metadata breaks during an event"},
	{Name: OpenFiles, Noise: 6, Why: "the same"},
	{Name: LogBytes, Unit: "KiB a day", Noise: 8, Share: 0.15,
		Why: "the number of retries until the API server or a host responds depends on the load of the machine"},
	{Name: LogLines, Unit: "a day", Noise: 20, Share: 0.15, Why: "the same"},
	{Name: EventsCreated, Unit: "a day", Noise: 10, Share: 0.2, Why: "the same"},
	{Name: Requests, Unit: "a day", Noise: 8, Share: 0.25,
		Why: "kubelets renew by the real clock, and the real duration of a day depends on the load of the machine"},
	{Name: Objects, Why: "none: each day ends with the same objects"},
	{Name: ObjectBytes, Unit: "KiB", Noise: 4, Share: 0.002, Why: "times and messages have different lengths"},
	{Name: Series, Noise: 0, Share: 0.01, Why: "histograms and results of requests appear when they first happen"},
	{Name: HostFiles, Noise: 2, Why: "a log has one more file for some time after its rotation"},
	{Name: HostBytes, Unit: "MiB", Noise: 0.5, Share: 0.05, Why: "logs grow until they are rotated"},
	{Name: HostEvents, Unit: "a day", Noise: 5, Share: 0.2, Why: "different repairs on a busy machine"},
}

// measureOf returns the measure with a name.
func measureOf(name string) Measure {
	for _, m := range measures {
		if m.Name == name {
			return m
		}
	}
	return Measure{Name: name, Why: "none: each day ends with the same objects"}
}

// isKindMeasure reports whether a measure belongs to a single kind of objects.
func isKindMeasure(name string) bool { return strings.HasPrefix(name, objectsOf) }
