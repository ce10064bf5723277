package probe

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/fpm-project/fpm/internal/atomicfile"
	"github.com/fpm-project/fpm/internal/exitcode"
)

// mayReplace tells whether the sidecar may be written over what has its name: a sidecar,
// but, after a failure, none of this run that observed more. Force allows for both that
// and a regular file that is no sidecar; an artifact, and a file that only a link of that
// name leads to, are never written over unless they are a sidecar.
func (r *run) mayReplace(p *probe) bool {
	path := r.merged.SidecarPath()
	_, info, err := atomicfile.Target(path)
	if err != nil {
		return r.fail(err)
	}
	if info == nil {
		return true
	}
	if r.merged.text.file.Is(info) {
		return r.refuse("the path of the sidecar leads to the merged artifact itself", "remove the link")
	}
	t, err := openText(r.ctx, path, nil)
	var broken *TextError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true
	case errors.As(err, &broken):
		return r.mayReplaceForeign(broken.Message)
	case err != nil:
		return r.fail(err)
	}
	defer t.file.Close()
	if isArtifact(t) {
		return r.refuse("the path of the sidecar leads to another artifact", "move that file, or give the merged artifact another name")
	}
	s, err := readSidecar(t)
	if err != nil {
		return r.fail(err)
	}
	if s.fault != nil {
		return r.mayReplaceForeign(s.fault.message)
	}
	return r.mayReplaceSidecar(p, s)
}

// mayReplaceForeign decides about a file that is no sidecar.
func (r *run) mayReplaceForeign(why string) bool {
	info, err := os.Lstat(r.merged.SidecarPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true // by now
	case err != nil:
		return r.fail(err)
	case info.Mode()&fs.ModeSymlink != 0:
		return r.refuse("the path of the sidecar is a link to a file that is no sidecar: "+why, "remove the link")
	case !r.opt.Force:
		return r.refuse("a file that is no sidecar has the name of the sidecar: "+why, "move that file; --force replaces it")
	}
	return true
}

// mayReplaceSidecar keeps what workers of this run said from a probe that got nothing.
func (r *run) mayReplaceSidecar(p *probe, s *sidecar) bool {
	if p.failure == "" || r.opt.Force || !equalOrNull(s.runID, r.merged.runID) {
		return true
	}
	observed, err := s.observed()
	if err != nil {
		return r.fail(err)
	}
	if observed {
		return r.refuse("the sidecar of this run observed workers, which a probe that observed none does not replace", "--force replaces it")
	}
	return true
}

// refuse takes note that what has the sidecar's name is not replaced. It returns false.
func (r *run) refuse(message, hint string) bool {
	return r.fail(&exitcode.Error{Code: exitcode.Failed, File: r.merged.SidecarPath(), Message: message, Hint: hint})
}

// isArtifact tells whether a document is a rank or a merged artifact.
func isArtifact(t *text) bool {
	return get(t.fields, "schema").Len == 0 && (get(t.fields, "artifact_type").Len > 0 || get(t.fields, "iteration_groups").Len > 0)
}

// lockFile waits until this process alone has the lock of a file, which it only reads, and
// returns what gives the lock back. It leaves nothing behind, and a process that is killed
// loses it. On a file system without locks, or where only a writer may lock, there is none
// to be had, and no error.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe is not waited for
	if err != nil {
		return nil, err
	}
	release := func() { _ = file.Close() } // it was only read
	locked := make(chan error, 1)
	go func() { locked <- flock(file) }()
	select {
	case err = <-locked:
	case <-ctx.Done():
		go func() { // flock cannot be called off, and needs the descriptor
			<-locked
			release()
		}()
		return nil, ctx.Err()
	}
	if err != nil {
		release()
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return release, nil
}

func flock(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EBADF),
			errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.EOPNOTSUPP):
			return nil
		default:
			return err
		}
	}
}
