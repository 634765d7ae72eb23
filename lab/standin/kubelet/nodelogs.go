package kubelet

import (
	"bytes"
	"fmt"
	"html"
	"net/http"
	"net/url"
	names "path"
	"strings"
	"time"
)

// logDirectory is the root of the real kubelet's file server: /var/log on the drive where the kubelet was started.
const logDirectory = `C:\var\log`

// serveNodeLogs serves the requests of `oc adm node-logs --path`, as http.FileServer does: a file, parts of a file,
// or a page of links to the entries of a directory.
func (s *server) serveNodeLogs(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("query") {
		s.serveNodeLogQuery(w, r)
		return
	}
	path := strings.TrimSuffix(r.PathValue("path"), "/")
	hostPath := strings.TrimSuffix(logDirectory+`\`+strings.ReplaceAll(path, "/", `\`), `\`)
	drive := s.k.Process.Machine
	if content, err := drive.ReadFile(hostPath); err == nil {
		http.ServeContent(w, r, path, time.Time{}, bytes.NewReader(content))
		return
	}
	entries, err := drive.List(hostPath)
	if err != nil {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/") {
		w.Header().Set("Location", names.Base(r.URL.Path)+"/")
		w.WriteHeader(http.StatusMovedPermanently)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n")
	for _, name := range entries {
		if _, err := drive.List(hostPath + `\` + name); err == nil {
			name += "/"
		}
		link := url.URL{Path: name}
		fmt.Fprintf(w, "<a href=\"%s\">%s</a>\n", link.String(), html.EscapeString(name))
	}
	fmt.Fprint(w, "</pre>\n")
}
