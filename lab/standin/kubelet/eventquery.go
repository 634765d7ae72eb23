package kubelet

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// maxServices is the maximum number of services in one query: k8s.io/kubernetes,
// pkg/kubelet/kubelet_server_journal.go.
const maxServices = 4

// serveNodeLogQuery serves the requests of `oc adm node-logs --unit`, as the kubelet does on Windows. For an event
// source, Get-WinEvent prints the events in the log Application. For any other service, the files are searched,
// and only if the query has no options.
func (s *server) serveNodeLogQuery(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	services := query["query"]
	most := -1
	if lines := query.Get("tailLines"); lines != "" {
		var err error
		if most, err = strconv.Atoi(lines); err != nil || most < 0 {
			http.Error(w, "tailLines: Invalid value: "+lines, http.StatusBadRequest)
			return
		}
	}
	switch {
	case r.PathValue("path") != "":
		http.Error(w, "path not allowed in query mode", http.StatusNotAcceptable)
		return
	case len(services) > maxServices:
		http.Error(w, "query: Too many", http.StatusNotAcceptable)
		return
	}
	log := s.k.Process.Host.EventLog
	var sources, files []string
	for _, service := range services {
		if known, err := log.HasSource(r.Context(), service); err == nil && known {
			sources = append(sources, service)
		} else {
			files = append(files, service)
		}
	}
	w.Header().Set("Content-Type", "text/plain;charset=UTF-8")
	if len(sources) > 0 {
		var events []host.LoggedEvent
		if err := log.Read(r.Context(), "Application", func(event host.LoggedEvent) bool {
			if slices.ContainsFunc(sources, func(source string) bool { return strings.EqualFold(source, event.Source) }) {
				events = append(events, event)
			}
			return most < 0 || len(events) < most
		}); err != nil {
			fmt.Fprintf(w, "Get-WinEvent : %v\n", err)
		}
		slices.Reverse(events)
		printEvents(w, events)
	}
	if len(files) > 0 && len(query) > 1 {
		fmt.Fprintf(w, "\noptions present and query resolved to log files for %v\ntry without specifying options\n", files)
		return
	}
	for _, service := range files {
		content, err := s.k.Process.Machine.ReadFile(logDirectory + `\` + service + `\` + service + ".log")
		if err != nil {
			fmt.Fprintf(w, "\nlog not found for %s\n", service)
			continue
		}
		_, _ = w.Write(content)
	}
}

// printEvents prints events as PowerShell's Format-Table does.
func printEvents(w io.Writer, events []host.LoggedEvent) {
	if len(events) == 0 {
		fmt.Fprintln(w, "Get-WinEvent : No events were found that match the specified selection criteria.")
		return
	}
	const row = "%-22s %5s %-16s %s\n"
	source := ""
	for _, event := range events {
		if event.Source != source {
			source = event.Source
			fmt.Fprintf(w, "\n\n   ProviderName: %s\n\n"+row+row, source, "TimeCreated", "Id", "LevelDisplayName", "Message", "-----------", "--", "----------------", "-------")
		}
		fmt.Fprintf(w, row, event.Time.UTC().Format("1/2/2006 3:04:05 PM"), strconv.FormatUint(uint64(event.ID), 10), event.Level,
			strings.ReplaceAll(event.Message, "\r\n", "\n"))
	}
}
