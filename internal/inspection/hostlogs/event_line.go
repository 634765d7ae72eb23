package hostlogs

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// kind identifies a kind of events.
type kind struct {
	source string
	id     uint32
}

// meanings holds the meanings of frequent events of Windows. Windows keeps the text of an event in a file of
// its source. The log contains only the variable parts, such as a service and an exit code.
var meanings = map[kind]string{
	{"service control manager", 7000}:             "a service does not start",
	{"service control manager", 7001}:             "a service that another one depends on does not start",
	{"service control manager", 7009}:             "a service has not connected in time",
	{"service control manager", 7011}:             "a service has not answered in time",
	{"service control manager", 7023}:             "a service has ended with an error",
	{"service control manager", 7024}:             "a service has ended with a service-specific error",
	{"service control manager", 7031}:             "a service has ended unexpectedly and is started again",
	{"service control manager", 7034}:             "a service has ended unexpectedly",
	{"service control manager", 7036}:             "a service has another state",
	{"service control manager", 7040}:             "a service has another start type",
	{"application error", 1000}:                   "a program has crashed",
	{"user32", 1074}:                              "a restart or shutdown was requested",
	{"eventlog", 6005}:                            "Windows has started",
	{"eventlog", 6006}:                            "Windows shuts down",
	{"eventlog", 6008}:                            "Windows was not shut down before it started",
	{"microsoft-windows-kernel-power", 41}:        "Windows was not shut down before it started",
	{"microsoft-windows-kernel-power", 109}:       "a shutdown has begun",
	{"microsoft-windows-time-service", 36}:        "the time has not been synchronized for a day",
	{"microsoft-windows-windowsupdateclient", 19}: "an update was installed",
}

// formatEvents returns a line for each event of a service, or of all services, the oldest first.
func formatEvents(events []agentapi.Event, service string) []string {
	chosen := slices.DeleteFunc(slices.Clone(events), func(e agentapi.Event) bool { return service != "" && !isServiceEvent(e.Event, service) })
	slices.Reverse(chosen) // the agent reports the newest of each log first
	slices.SortStableFunc(chosen, func(a, b agentapi.Event) int { return a.Time.Compare(b.Time) })
	lines := make([]string, len(chosen))
	for i, event := range chosen {
		lines[i] = formatEvent(event)
	}
	return lines
}

// maxEventLength is the maximum length of the line of an event, in bytes.
const maxEventLength = 2 << 10

func formatEvent(e agentapi.Event) string {
	meaning := meanings[kind{strings.ToLower(e.Source), e.ID}]
	if meaning != "" {
		meaning = " (" + meaning + ")"
	}
	message := strings.Join(strings.Fields(e.Message), " ")
	return sanitize.Plain(fmt.Sprintf("%s %s %s/%s %d%s: %s", e.Time.UTC().Format(time.RFC3339), e.Level, e.Log, e.Source, e.ID, meaning, message),
		maxEventLength)
}

// isServiceEvent reports whether an event comes from a service, or names the service.
func isServiceEvent(event host.Event, service string) bool {
	if strings.EqualFold(event.Source, service) {
		return true
	}
	return slices.ContainsFunc(strings.FieldsFunc(event.Message, isNameSeparator), func(word string) bool {
		return strings.EqualFold(strings.TrimSuffix(strings.ToLower(strings.Trim(word, ".")), ".exe"), service)
	})
}

// isNameSeparator reports whether a character cannot be part of the name of a service or program.
func isNameSeparator(c rune) bool {
	return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '-' && c != '_' && c != '.'
}
