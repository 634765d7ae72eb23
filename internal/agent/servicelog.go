package agent

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// maxServiceLog is the size in bytes at which the service's log becomes wicd.log.1 and a new one begins.
const maxServiceLog = 128 << 10

// serviceLog is the log of the agent's service. It is written only when something was done, so it is small and each line can rewrite
// the file.
type serviceLog struct {
	*agent
	copy io.Writer
	text *string // of the file; nil before the first line
}

func newServiceLog(a *agent, to io.Writer) *serviceLog { return &serviceLog{agent: a, copy: to} }

func logFile() string { return nodespec.LogDirectory(nodespec.ServiceAgent) + `\wicd.log` }

// printf adds a line. A log that cannot be written keeps nobody from working.
func (l *serviceLog) printf(ctx context.Context, format string, arguments ...any) {
	line := l.clock.Now().UTC().Format(time.RFC3339) + " " + strings.ReplaceAll(fmt.Sprintf(format, arguments...), "\n", " ") + "\r\n"
	_, _ = io.WriteString(l.copy, line)
	if _, err := l.host.Files.Stat(ctx, nodespec.LogDirectory(nodespec.ServiceAgent)); err != nil {
		return // nobody has made the folder yet
	}
	if l.text == nil {
		data, err := l.store.read(ctx, logFile())
		if err != nil {
			return
		}
		text := string(data)
		l.text = &text
	}
	if len(*l.text)+len(line) > maxServiceLog && l.host.Tree.Rename(ctx, logFile(), logFile()+".1") == nil {
		*l.text = ""
	}
	*l.text += line
	_ = l.host.Files.Write(ctx, logFile(), strings.NewReader(*l.text), host.WriteOptions{Access: host.AccessInherited})
}
