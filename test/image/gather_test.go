package image

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/testenv"
)

// gathered is the directory that oc adm must-gather copies.
const gathered = "/must-gather"

// gatherNamespace is a namespace like the namespaces that oc adm must-gather creates.
const gatherNamespace = "openshift-must-gather-test"

// gatherPod returns a container like a container of oc adm must-gather, with the permissions of a cluster
// administrator and a volume for collected files. All other settings come from the image. It returns the volume,
// too.
func gatherPod(t *testing.T, r *testenv.Environment, like container, command ...string) (container, string) {
	t.Helper()
	account := metav1.ObjectMeta{Namespace: gatherNamespace, Name: "default"}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: gatherNamespace}},
		&corev1.ServiceAccount{ObjectMeta: account},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: gatherNamespace},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}},
	} {
		if err := r.Client.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	volume := newWritableDirectory(t)
	return container{User: like.User, Entry: command[:1], Args: command[1:], Dir: "/", Env: apiServer(t, r), Mounts: []mount{
		{Source: writeCredentials(t, r, account.Namespace, account.Name), Target: tokens, ReadOnly: true},
		{Source: volume, Target: gathered},
	}}, volume
}

// checkGather runs the program that oc adm must-gather runs, and checks the collected files.
func checkGather(t *testing.T, r *testenv.Environment, containers engine, like container) {
	var log bytes.Buffer
	pod, volume := gatherPod(t, r, like, "/usr/bin/gather")
	if err := containers.start(t, pod, &log).Wait(); err != nil {
		t.Fatalf("%v: %s", err, log.String())
	}
	instance, err := r.Instance(t.Context(), r.Hosts()[0].Options.Name)
	if err != nil || instance == nil {
		t.Fatalf("the instance: %v", err)
	}
	want := []string{"status.txt", "gaps.txt", "policy.yaml", "events.yaml", "windows-instances.yaml", "cluster/nodes.yaml",
		"operator/deployments.yaml", "hosts/" + instance.Name + "/windowsinstance.yaml", "hosts/" + instance.Name + "/status.txt",
		"hosts/" + instance.Name + "/node-events.yaml"}
	got := filesIn(t, volume)
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("there is no %s; it said:\n%s", name, log.String())
		}
	}
	if !strings.Contains(log.String(), " files of 1 host.") {
		t.Errorf("it said:\n%s", log.String())
	}
	gaps, err := os.ReadFile(filepath.Join(volume, "gaps.txt"))
	if err != nil || strings.Contains(string(gaps), "forbidden") {
		t.Errorf("error %v; it could not read all of it:\n%s", err, gaps)
	}
}

// filesIn returns the files below a directory, with slashes.
func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	if err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return names
}

// The commands have the form used by oc of OpenShift 4.14 to 5.1 for the two containers of its pod. One shell
// checks the disk usage next to the program, and the other shell runs tar.
func TestMustGather_WorksOnBaseImageWithShell(t *testing.T) {
	version := operatorVersion(t)
	w := writeImage(t, contents{version: version, base: baseWithShell(t)})
	r := bootLab(t, w.payload, version)
	output, err := runMakeTarget(t.Context(), r, "deploy", "IMAGE=registry.example.com/wmco:dev")
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	config, err := w.image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	like := container{User: imageUser(t, config.Config)}
	containers := layers{unpackImage(t, w.image)}
	var log bytes.Buffer
	pod, volume := gatherPod(t, r, like, "/bin/bash", "-c", "while true; do df -P /must-gather; sleep 5; done & "+
		"if command -v setsid; then exit 1; else /usr/bin/gather; fi; sync && echo written")
	pod.Env = append(pod.Env, config.Config.Env...)
	if err := containers.start(t, pod, &log).Wait(); err != nil || !strings.Contains(log.String(), "written") {
		t.Fatalf("%v: %s", err, log.String())
	}
	if names := filesIn(t, volume); !slices.Contains(names, "operator/deployments.yaml") {
		t.Errorf("there are %v; it said:\n%s", names, log.String())
	}
	copying, _ := gatherPod(t, r, like, "tar", "-C", gathered, "-c", ".")
	copying.Entry, copying.Mounts = []string{"/usr/bin/tar"}, pod.Mounts
	var archive bytes.Buffer
	if err := containers.start(t, copying, &archive).Wait(); err != nil || !strings.Contains(archive.String(), "./status.txt") {
		t.Errorf("error %v: %d bytes", err, archive.Len())
	}
}

// baseWithShell writes an image with this machine's bash and the other programs that oc adm must-gather needs in a
// container.
func baseWithShell(t *testing.T) (dir string) {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"bash", "tar", "sync", "sleep", "df"} {
		program, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		files["usr/bin/"+name] = program
		libraries, err := exec.CommandContext(t.Context(), "ldd", program).Output()
		if err != nil {
			t.Fatalf("the libraries of %s: %v", program, err)
		}
		for _, path := range regexp.MustCompile(`(/\S+) \(0x`).FindAllStringSubmatch(string(libraries), -1) {
			files[strings.TrimPrefix(path[1], "/")] = path[1]
		}
	}
	files["bin/bash"] = files["usr/bin/bash"]
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return archiveOf(files) })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	if image, err = mutate.Config(image, v1.Config{Env: []string{"PATH=/usr/bin"}}); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "base")
	path, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = path.AppendImage(image, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func archiveOf(files map[string]string) (io.ReadCloser, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content, err := os.ReadFile(files[name])
		if err == nil {
			err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(content))})
		}
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			return nil, err
		}
	}
	return io.NopCloser(&archive), w.Close()
}
