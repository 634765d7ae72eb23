package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// progress counts what go has compiled.
type progress struct {
	screen *screen
	list   func() (map[string]int64, error)
	now    func() time.Time

	mu       sync.Mutex
	began    time.Time // of the first compilation
	compiled map[string]bool
	weights  map[string]int64 // of all that is to be compiled, once known
	failed   bool             // whether that cannot be known
	modules  int
}

// newProgress returns a progress that asks list, once something is compiled, for the weights of all packages that are
// out of date.
func newProgress(screen *screen, list func() (map[string]int64, error)) *progress {
	return &progress{screen: screen, list: list, now: time.Now, compiled: map[string]bool{}}
}

// line takes a line that go has printed: the name of a module that it fetches, of a package that it has compiled, or a
// complaint.
func (p *progress) line(platform, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		p.modules++
		p.screen.show(-1, fmt.Sprintf("fetching Go modules: %d so far", p.modules))
	case line == "" || strings.ContainsAny(line, " \t:"):
		p.screen.print(line)
	default:
		if p.began.IsZero() {
			p.began = p.now()
			go p.weigh()
		}
		p.compiled[key(platform, line)] = true
		p.weighUnexpected(key(platform, line))
		p.show()
	}
}

// weigh learns how much there is to be compiled.
func (p *progress) weigh() {
	weights, err := p.list()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.failed = true
		p.screen.print("cannot show progress: " + err.Error())
		return
	}
	p.weights = weights
	for name := range p.compiled { // before the list was made
		p.weighUnexpected(name)
	}
	p.show()
}

// weighUnexpected gives a package that the list does not have a weight, a small one.
func (p *progress) weighUnexpected(name string) {
	if p.weights != nil && p.weights[name] == 0 {
		p.weights[name] = startOfCompiler
	}
}

func (p *progress) show() {
	if p.weights == nil {
		p.screen.show(-1, "compiling")
		return
	}
	percent, left := estimate(p.weights, p.compiled, p.now().Sub(p.began))
	p.screen.show(percent, fmt.Sprintf("%3d %% compiled, %s", percent, remains(left)))
}

// estimate returns how much is compiled, in percent, and how long the rest takes if it goes on like this. A package
// that go compiles although it was not expected to counts like an average one.
func estimate(weights map[string]int64, compiled map[string]bool, elapsed time.Duration) (percent int,
	left time.Duration) {
	var done, all int64
	for name, weight := range weights {
		all += weight
		if compiled[name] {
			done += weight
		}
	}
	if all == 0 || done == 0 {
		return 0, 0
	}
	return int(100 * done / all), time.Duration(float64(elapsed) * float64(all-done) / float64(done))
}

func remains(left time.Duration) string {
	switch {
	case left <= 0:
		return "linking"
	case left < 50*time.Second:
		return fmt.Sprintf("about %d seconds remain", max(10, int(left.Round(10*time.Second).Seconds())))
	case left < 90*time.Second:
		return "about a minute remains"
	default:
		return fmt.Sprintf("about %d minutes remain", int(left.Round(time.Minute).Minutes()))
	}
}

// finish ends the line, and reports whether anything was compiled.
func (p *progress) finish() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.screen.clear()
	return len(p.compiled) > 0
}

// screen is where one line is kept up to date: on a terminal in place. A file gets a line for each fifth of the work.
type screen struct {
	file     *os.File
	terminal bool
	fifths   int
	silent   bool // whether a line without percent was written to a file
}

func newScreen(file *os.File) *screen {
	return &screen{file: file, terminal: term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"}
}

// show shows a line; percent is -1 where it is not known.
func (s *screen) show(percent int, line string) {
	switch {
	case s.terminal:
		fmt.Fprint(s.file, "\r\x1b[K  "+line)
	case percent < 0 && !s.silent:
		s.silent = true
		fmt.Fprintln(s.file, "  "+line)
	case percent/20 > s.fifths:
		s.fifths = percent / 20
		fmt.Fprintln(s.file, "  "+line)
	}
}

// print prints a line that stays.
func (s *screen) print(line string) {
	s.clear()
	fmt.Fprintln(s.file, line)
}

func (s *screen) clear() {
	if s.terminal {
		fmt.Fprint(s.file, "\r\x1b[K")
	}
}
