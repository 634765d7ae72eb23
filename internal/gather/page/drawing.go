package page

import (
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/fleet"
)

// The measures of a drawing, in units of the drawing.
const (
	left      = 110.0 // start of the time axis, after the names of the conditions
	right     = 950.0
	laneTop   = 12.0
	laneStep  = 24.0
	barHeight = 16.0
	// maxLetterWidth is the maximum width of a letter.
	maxLetterWidth = 7.0
	// minTickDistance is the minimum distance between two marks of the axis.
	minTickDistance = 70.0
)

// lanes lists the conditions in the order of becoming True.
var lanes = []string{v1alpha1.ConditionReachable, v1alpha1.ConditionSupported, v1alpha1.ConditionPrepared,
	v1alpha1.ConditionInstalled, v1alpha1.ConditionJoined, v1alpha1.ConditionNetworkReady, v1alpha1.ConditionReady,
	v1alpha1.ConditionUpToDate}

// drawing is the timeline of a host: a lane for each condition, a lane for the events, and the axis.
type drawing struct {
	Height, Axis, Events, TextUp string
	Lanes                        []lane
	Ticks                        []tick
	Marks                        []mark
	Label                        string
}

// lane shows since when a condition has its current status. Earlier states are unknown.
type lane struct {
	Name, Y, TextY, BarY           string
	Begin, From, Length            string
	Class, Text, TextX, Anchor, In string
	Tip                            string
}

type tick struct{ X, Label, Anchor string }

type mark struct{ X, Class, Tip string }

// scale maps times to the axis. The scale is logarithmic: the last minutes are as wide as the days before.
type scale struct {
	now   time.Time
	total time.Duration
}

func (s scale) positionOf(t time.Time) float64 {
	age := min(max(s.now.Sub(t), 0), s.total)
	return right - (right-left)*logMinutes(age)/logMinutes(s.total)
}

func logMinutes(d time.Duration) float64 { return math.Log1p(d.Minutes()) }

func newDrawing(i fleet.Instance, events []corev1.Event, now time.Time) drawing {
	s := scale{now: now, total: max(now.Sub(i.CreationTimestamp.Time), time.Second)}
	d := drawing{Ticks: s.axisTicks(), Label: fmt.Sprintf("Conditions and events of %s since it was created, until now", i.Name)}
	at := laneTop
	for _, name := range lanes {
		c := meta.FindStatusCondition(i.Status.Conditions, name)
		if c == nil {
			continue
		}
		d.Lanes = append(d.Lanes, s.newLane(*c, at))
		at += laneStep
	}
	for _, e := range events {
		class := "normal"
		if e.Type == corev1.EventTypeWarning {
			class = "warning"
		}
		d.Marks = append(d.Marks, mark{X: formatNumber(s.positionOf(fleet.LastSeen(e))), Class: class,
			Tip: fmt.Sprintf("%s %s: %s", formatTime(fleet.LastSeen(e)), e.Reason, sanitizeText(e.Message))})
	}
	d.Events, d.TextUp = formatNumber(at+laneStep/2), formatNumber(at+laneStep/2+4)
	d.Axis, d.Height = formatNumber(at+laneStep), formatNumber(at+2*laneStep)
	return d
}

func (s scale) newLane(c metav1.Condition, at float64) lane {
	from := min(s.positionOf(c.LastTransitionTime.Time), right-3)
	l := lane{Name: c.Type, Y: formatNumber(at + barHeight/2), TextY: formatNumber(at + barHeight/2 + 4), BarY: formatNumber(at),
		Begin: formatNumber(left), From: formatNumber(from), Length: formatNumber(right - from), Class: "unknown",
		Text: fmt.Sprintf("%s for %s", c.Status, fleet.Age(s.now, c.LastTransitionTime.Time)),
		Tip: fmt.Sprintf("%s=%s since %s UTC: %s. %s", c.Type, c.Status, formatTime(c.LastTransitionTime.Time), c.Reason,
			sanitizeText(c.Message))}
	switch c.Status {
	case metav1.ConditionTrue:
		l.Class = "true"
	case metav1.ConditionFalse:
		l.Class = "false"
	}
	if c.Status != metav1.ConditionTrue {
		l.Text = fmt.Sprintf("%s: %s for %s", c.Status, c.Reason, fleet.Age(s.now, c.LastTransitionTime.Time))
	}
	// The text is inside the bar, or before the bar if the bar is short.
	l.TextX, l.Anchor, l.In = formatNumber(from+6), "start", "inside"
	if right-from < maxLetterWidth*float64(len(l.Text))+12 {
		l.TextX, l.Anchor, l.In = formatNumber(from-6), "end", "outside"
	}
	return l
}

// axisAges lists the ages that the axis may show.
var axisAges = []struct {
	age   time.Duration
	label string
}{
	{time.Minute, "1 min"}, {5 * time.Minute, "5 min"}, {15 * time.Minute, "15 min"}, {time.Hour, "1 h"}, {3 * time.Hour, "3 h"},
	{12 * time.Hour, "12 h"}, {24 * time.Hour, "1 d"}, {72 * time.Hour, "3 d"}, {7 * 24 * time.Hour, "7 d"},
	{30 * 24 * time.Hour, "30 d"}, {90 * 24 * time.Hour, "90 d"}, {365 * 24 * time.Hour, "1 y"},
}

// axisTicks returns the marks of the axis: both ends, and as many ages between them as fit.
func (s scale) axisTicks() []tick {
	ticks := []tick{{X: formatNumber(left), Label: formatTime(s.now.Add(-s.total)), Anchor: "start"}}
	last := right
	for _, m := range axisAges {
		x := s.positionOf(s.now.Add(-m.age))
		if m.age >= s.total || last-x < minTickDistance || x-left < 2*minTickDistance+maxLetterWidth*float64(len(time.DateTime))/2 {
			continue
		}
		last = x
		ticks = append(ticks, tick{X: formatNumber(x), Label: m.label + " ago", Anchor: "middle"})
	}
	return append(ticks, tick{X: formatNumber(right), Label: "now", Anchor: "end"})
}

func formatNumber(x float64) string { return fmt.Sprintf("%.1f", x) }
